"""FCLIB's files: read as others write them, written so that others read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from fclib_files import RNG, arrays, local_file, put, rolling, seed, whole
from fixed_point import fixed_point

from implicit_geom import ContactProblem, ContactSolution, Scene, SceneError, contact_problem, shapes

FORMS = (None, "csc", "csr")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test has the same numbers, whatever ran before it."""
    seed()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bilateral", [False, True])
def test_local(tmp_path: Path, form: str | None, bilateral: bool) -> None:
    """W and q are those of the file, bilateral rows eliminated; written again, it is the same file."""
    path = tmp_path / "local.hdf5"
    given = local_file(path, form, bilateral)
    problem = ContactProblem.read(path)
    assert (problem.dim, problem.contacts, problem.G.shape[1]) == (3, 4, 2 * bilateral)
    W, q = given["W"], given["q"]
    if bilateral:
        VR = given["V"] @ np.linalg.inv(given["R"])
        W, q = W - VR @ given["V"].T, q - VR @ given["s"]
    np.testing.assert_allclose(problem.W.toarray(), W, atol=1e-12)
    np.testing.assert_allclose(problem.q, q, atol=1e-12)
    np.testing.assert_array_equal(problem.mu, given["mu"])
    problem.write(tmp_path / "again.hdf5")
    before, after = arrays(path), arrays(tmp_path / "again.hdf5")
    assert set(before) == set(after)
    for name, value in before.items():
        assert np.array_equal(value, after[name]), name
        assert getattr(value, "dtype", None) == getattr(after[name], "dtype", None), name


def test_local_and_global_have_one_solution(tmp_path: Path) -> None:
    """A local problem, and the global one behind it, have the same contact velocities and impulses."""
    given = local_file(tmp_path / "local.hdf5")
    with h5py.File(tmp_path / "global.hdf5", "w") as file:
        group = file.create_group("fclib_global")
        group["spacedim"] = np.array([3], np.int32)
        for name in "MHG":
            put(group, name, given[name])
        for name in ("f", "w", "mu", "b"):
            group[f"vectors/{name}"] = given[name]
    one, two = (ContactProblem.read(tmp_path / f"{kind}.hdf5") for kind in ("local", "global"))
    np.testing.assert_allclose(two.v_free, np.linalg.solve(given["M"], given["f"]), atol=1e-12)
    first, second = (fixed_point(problem, tolerance=1e-11) for problem in (one, two))
    for found in (first, second):
        found.tolerance = 1e-9
        assert found.converged, found.residuals
    np.testing.assert_allclose(first.impulse, second.impulse, atol=1e-8)
    np.testing.assert_allclose(first.contact_velocity, second.contact_velocity, atol=1e-8)
    np.testing.assert_allclose(first.multiplier, second.multiplier, atol=1e-8)


def test_redundant_contacts(tmp_path: Path) -> None:
    """W of more rows than velocities is of low rank; its factor has as many rows as that."""
    H = RNG.normal(size=(6, 30))
    H[:, 5] = 0.0  # a row without mass
    H *= 10.0 ** RNG.uniform(-4, 4, 30)
    with h5py.File(tmp_path / "p.hdf5", "w") as file:
        group = file.create_group("fclib_local")
        group["spacedim"] = np.array([3], np.int32)
        put(group, "W", H.T @ H)
        group["vectors/q"], group["vectors/mu"] = np.ones(30), np.ones(10)
    problem = ContactProblem.read(tmp_path / "p.hdf5")
    assert problem.n == 6
    size = np.maximum(np.linalg.norm(H, axis=0), 1e-100)
    error = (problem.W.toarray() - H.T @ H) / np.outer(size, size)
    np.testing.assert_allclose(error, 0, atol=1e-12)


KINDS = {
    "global": (lambda: whole(), "fclib_global"),
    "without bilateral rows": (lambda: whole(G=None, b=None), "fclib_global"),
    "plane": (lambda: whole(mu=np.full(6, 0.4)), "fclib_global"),
    "rolling": (rolling, "fclib_global_rolling"),
    "ellipsoids": (lambda: whole(e=(0.5, 2.0)), "implicit_geom_global"),
    "torsion": (lambda: whole(mu=np.full(3, 0.4), e=(1, 1, 0.01)), "implicit_geom_global"),
    "nothing": (
        lambda: ContactProblem(M=np.eye(3), H=np.zeros((3, 0)), v_free=np.ones(3), mu=[]),
        "fclib_global",
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_written_and_read(tmp_path: Path, name: str) -> None:
    """What FCLIB has goes to its groups, what it has not to ours; nothing is lost."""
    make, group = KINDS[name]
    problem = make()
    problem.write(tmp_path / "p.hdf5", title="a title")
    stored = arrays(tmp_path / "p.hdf5")
    assert {key.split("/")[0] for key in stored} == {group}
    assert stored[f"{group}/info/title"] == b"a title"
    assert stored[f"{group}/M/p"].dtype == np.int32
    again = ContactProblem.read(tmp_path / "p.hdf5")
    assert (again.dim, again.contacts) == (problem.dim, problem.contacts)
    for key in ("v_free", "w", "mu", "e", "b", "mu_r"):
        one, two = getattr(problem, key), getattr(again, key)
        assert (one is None) == (two is None)
        if one is not None:
            np.testing.assert_allclose(two, one, atol=1e-12)
    for key in ("M", "H", "G"):
        np.testing.assert_array_equal(getattr(problem, key).toarray(), getattr(again, key).toarray())


def test_law_of_the_file(tmp_path: Path) -> None:
    """M v = H r + G l + f and G^T v + b = 0 hold in the file's own arrays, with the file's solution."""
    problem = whole()
    problem.write(tmp_path / "p.hdf5", solution=fixed_point(problem, tolerance=1e-9))
    a = arrays(tmp_path / "p.hdf5")

    def matrix(name: str) -> Any:
        p, i, x = (a[f"fclib_global/{name}/{key}"] for key in "pix")
        m, n, nz = (int(a[f"fclib_global/{name}/{key}"][0]) for key in ("m", "n", "nz"))
        assert nz == -1
        return sp.csc_matrix((x, i, p), shape=(m, n))

    M, H, G = (matrix(name) for name in "MHG")
    v, u, r, el = (a[f"solution/{name}"] for name in ("v", "u", "r", "l"))
    f, w, b = (a[f"fclib_global/vectors/{name}"] for name in "fwb")
    np.testing.assert_allclose(M @ v, H @ r + G @ el + f, atol=1e-9)
    np.testing.assert_allclose(u, H.T @ v + w, atol=1e-12)
    np.testing.assert_allclose(G.T @ v + b, 0, atol=1e-9)


@pytest.mark.parametrize("kind", ["global", "local"])
def test_solution_and_guesses(tmp_path: Path, kind: str) -> None:
    """They are kept, certify themselves anew, and start a solver; a file without them says so."""
    path = tmp_path / "p.hdf5"
    if kind == "local":
        local_file(tmp_path / "local.hdf5")
        problem = ContactProblem.read(tmp_path / "local.hdf5")
    else:
        problem = whole()
    problem.write(path)
    with pytest.raises(SceneError, match=r"p\.hdf5: /solution is missing"):
        ContactSolution.read(path)
    assert ContactSolution.read_guesses(path) == []
    s = fixed_point(problem, tolerance=1e-11)
    problem.write(path, solution=s, guesses=[s.impulse, s, np.zeros(12)])
    again = ContactSolution.read(path)
    again.tolerance = 1e-8
    assert again.converged
    for key in ("velocity", "impulse", "multiplier", "contact_velocity"):
        np.testing.assert_allclose(getattr(again, key), getattr(s, key), atol=1e-8)
    assert ("solution/v" in arrays(path)) == (kind == "global")
    guesses = ContactSolution.read_guesses(path)
    assert [bool(g.error < 1e-8) for g in guesses] == [True, True, False]
    with pytest.raises(SceneError, match="solution of another problem"):
        problem.write(path, solution=fixed_point(rolling(), tolerance=1.0))
    with pytest.raises(SceneError, match="guesses: each must be"):
        problem.write(path, guesses=[np.zeros(3)])


def test_scaled(tmp_path: Path) -> None:
    """The scaled problem is one of FCLIB's; its impulses are p / e."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0.1), velocity=(1, 1, 0))
    scene.friction(mu=0.3, e_t=0.5, e_o=2.0, direction=(1, 0, 0))
    problem = contact_problem(scene, step=0.01)
    problem.scaled().write(tmp_path / "p.hdf5")
    assert "fclib_global/spacedim" in arrays(tmp_path / "p.hdf5")
    s = fixed_point(ContactProblem.read(tmp_path / "p.hdf5"), tolerance=1e-11)
    p = fixed_point(problem, tolerance=1e-11)
    np.testing.assert_allclose(s.impulse * (1, 0.5, 2.0), p.impulse, atol=1e-9)
    np.testing.assert_allclose(s.velocity, p.velocity, atol=1e-9)
