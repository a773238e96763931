"""FCLIB's files: read as others write them, written so that others read them, strangers' mistakes named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from fixed_point import fixed_point

from implicit_geom import ContactProblem, ContactSolution, Scene, SceneError, contact_problem, shapes
from implicit_geom.solvers.contact.fclib import arrays as fclib_arrays

RNG = np.random.default_rng(11)
SEEDED = RNG.bit_generator.state
FORMS = (None, "csc", "csr")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Every test has the same numbers, whatever ran before it."""
    RNG.bit_generator.state = SEEDED


def put(group: h5py.Group, name: str, A: Any, form: str | None = "csc", room: int = 0) -> None:
    """A matrix as FCLIB's C library stores it: triplets, compressed columns or rows; with room for more."""
    own = group.create_group(name)
    A = sp.coo_matrix(A) if form is None else sp.csc_matrix(A) if form == "csc" else sp.csr_matrix(A)
    parts = (A.row, A.col) if form is None else (A.indptr, A.indices)
    sizes = {"m": A.shape[0], "n": A.shape[1], "nzmax": A.nnz + room}
    sizes["nz"] = A.nnz if form is None else -1 if form == "csc" else -2
    for key, size in sizes.items():
        own.create_dataset(key, data=np.array([size], np.int32))
    more = np.full(room, -7, np.int32)
    own.create_dataset("p", data=parts[0].astype(np.int32))
    own.create_dataset("i", data=np.concatenate([parts[1].astype(np.int32), more]))
    own.create_dataset("x", data=np.concatenate([A.data, np.zeros(room)]))
    own.create_dataset("comment", data=np.bytes_(b"a matrix"))
    own.create_dataset("conditioning", data=np.array([1.0]))
    own.create_dataset("determinant", data=np.array([1.0]))
    own.create_dataset("rank", data=np.array([3], np.int32))


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Every dataset of a file."""
    found: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if hasattr(item, "shape") else None)
    return found


def masses(bodies: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M, H of four contacts and G of two rows, all of random entries."""
    A = RNG.normal(size=(bodies, 6, 6))
    M = np.asarray(sp.block_diag(list(A @ A.transpose(0, 2, 1) + 3 * np.eye(6))).toarray())
    return M, RNG.normal(size=(6 * bodies, 12)), RNG.normal(size=(6 * bodies, 2))


def local_file(path: Path, form: str | None = "csc", bilateral: bool = True) -> dict[str, np.ndarray]:
    """A local problem as FCLIB writes it; the matrices behind it."""
    M, H, G = masses()
    f, w, b = RNG.normal(size=18), RNG.normal(size=12), RNG.normal(size=2)
    inverse = np.linalg.inv(M)
    given = {"W": H.T @ inverse @ H, "q": H.T @ inverse @ f + w, "mu": np.array([0.1, 0.5, 0.7, 1.0])}
    if bilateral:
        given |= {"V": H.T @ inverse @ G, "R": G.T @ inverse @ G, "s": G.T @ inverse @ f + b}
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_local")
        group.create_dataset("spacedim", data=np.array([3], np.int32))
        for name, value in given.items():
            if value.ndim == 2:
                put(group, name, value, form, room=2 if form == "csc" else 0)
            else:
                group.create_dataset(f"vectors/{name}", data=value)
        group.create_dataset("info/title", data=np.bytes_(b"four contacts"))
    return given | {"M": M, "H": H, "G": G, "f": f, "w": w, "b": b}


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


def whole(**more: Any) -> ContactProblem:
    """A problem of four contacts with bilateral rows."""
    M, H, G = masses()
    given: dict[str, Any] = {"M": M, "H": H, "v_free": RNG.normal(size=18), "w": RNG.normal(size=12)}
    return ContactProblem(**{**given, "mu": np.full(4, 0.4), "G": G, "b": RNG.normal(size=2), **more})


def rolling() -> ContactProblem:
    H = RNG.normal(size=(18, 10))
    return whole(H=H, w=RNG.normal(size=10), mu=[0.3, 0.4], mu_r=[0.01, 0.02])


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


def change(name: str, value: Any) -> Any:
    def act(file: h5py.File) -> None:
        del file[name]
        if value is not None:
            file[name] = value

    return act


def link(file: h5py.File) -> None:
    del file["fclib_global/vectors/f"]
    file["fclib_global/vectors/f"] = h5py.ExternalLink("/etc/passwd", "/f")


def larger(file: h5py.File) -> None:
    """A dataset that is stored nowhere."""
    del file["fclib_global/vectors/f"]
    file.create_dataset("fclib_global/vectors/f", (10**7,), "f8", chunks=(10**6,))


def fewer(name: str) -> Any:
    """One column of a matrix less, all else in order."""

    def act(file: h5py.File) -> None:
        starts = file[f"fclib_global/{name}/p"][()]
        change(f"fclib_global/{name}/n", np.array([len(starts) - 2], np.int32))(file)
        change(f"fclib_global/{name}/p", starts[:-1])(file)

    return act


def group(file: h5py.File) -> None:
    del file["fclib_global/vectors/f"]
    file.create_group("fclib_global/vectors/f/x")


G_ = "fclib_global"
INT = np.int32
MISTAKES = {
    "no problem": (lambda f: f.move(G_, "other"), "holds no contact problem"),
    "no vector": (change(f"{G_}/vectors/w", None), "/fclib_global/vectors/w is missing"),
    "no spacedim": (change(f"{G_}/spacedim", None), "spacedim is missing"),
    "spacedim 4": (change(f"{G_}/spacedim", np.array([4], INT)), "/fclib_global/spacedim = 4 must be 2 or 3"),
    "spacedim 2": (change(f"{G_}/spacedim", np.array([2], INT)), r"mu has the shape \(4,\); it must"),
    "several": (change(f"{G_}/spacedim", np.array([3, 3], INT)), r"spacedim has the shape \(2,\)"),
    "text": (change(f"{G_}/spacedim", "three"), "spacedim holds"),
    "not finite": (change(f"{G_}/vectors/f", np.full(18, np.nan)), "f holds a number that is not finite"),
    "negative mu": (change(f"{G_}/vectors/mu", np.full(4, -0.1)), "vectors/mu holds a negative number"),
    "wrong size": (change(f"{G_}/vectors/f", np.ones(3)), r"f has the shape \(3,\); it must be \(18,\)"),
    "not square": (change(f"{G_}/M/n", np.array([17], INT)), "/fclib_global/M"),
    "one column less of M": (fewer("M"), "/fclib_global/M/n = 17 must be 18: a mass matrix is square"),
    "one column less of H": (fewer("H"), "/fclib_global/H/n = 11 must be a multiple of spacedim = 3"),
    "huge": (change(f"{G_}/M/m", np.array([2**31 - 1], INT)), "M/m = 2147483647 must be between"),
    "negative size": (change(f"{G_}/M/m", np.array([-1], INT)), "M/m = -1 must be between"),
    "unknown form": (change(f"{G_}/H/nz", np.array([-3], INT)), "H/nz = -3 must be between"),
    "index too large": (change(f"{G_}/H/i", np.full(216, 18, INT)), "H/i holds an index outside 0 to 17"),
    "index below zero": (change(f"{G_}/H/i", np.full(216, -1, INT)), "H/i holds an index outside"),
    "pointers that fall": (change(f"{G_}/H/p", np.arange(13, 0, -1).astype(INT)), "H/p must begin with 0"),
    "pointers beyond": (change(f"{G_}/H/p", (100 * np.arange(13)).astype(INT)), "H/i has the shape"),
    "values missing": (change(f"{G_}/H/x", np.ones(3)), "H/x has the shape"),
    "fractions for indices": (change(f"{G_}/H/i", np.ones(216)), "H/i holds float64; it must hold whole"),
    "infinite values": (change(f"{G_}/H/x", np.full(216, np.inf)), "H/x holds a number that is not finite"),
    "too many columns": (change(f"{G_}/H/n", np.array([13], INT)), "/fclib_global/H"),
    "not symmetric": (change(f"{G_}/M/x", np.arange(108.0)), "/fclib_global/M must be symmetric"),
    "not positive": (change(f"{G_}/M/x", -np.ones(108)), "/fclib_global/M must be positive definite"),
    "bilateral rows without b": (change(f"{G_}/vectors/b", None), "vectors/b is missing"),
    "a group": (group, "/fclib_global/vectors/f/x is a group; groups are not nested so deeply"),
    "external link": (link, "/fclib_global/vectors/f is a link to elsewhere"),
    "nothing stored": (larger, "/fclib_global/vectors/f is larger than what is stored"),
    "complex numbers": (change(f"{G_}/vectors/f", np.ones(18, complex)), "vectors/f has the type"),
    "a cube": (change(f"{G_}/vectors/f", np.ones((18, 1, 1))), "vectors/f has 3 axes"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(tmp_path: Path, name: str) -> None:
    """Each is refused in one line that names the file and the dataset."""
    path = tmp_path / "p.hdf5"
    whole().write(path)
    act, words = MISTAKES[name]
    with h5py.File(path, "r+") as file:
        act(file)
    with pytest.raises(SceneError, match=words) as told:
        ContactProblem.read(path)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, or what is packed in it, that is larger than what is read."""
    path = tmp_path / "p.hdf5"
    whole().write(path)
    with h5py.File(path, "r+") as file:
        file.create_dataset("fclib_global/more", data=np.zeros(100_000), compression="gzip")
    monkeypatch.setattr(fclib_arrays, "MEMORY", 400_000)
    with pytest.raises(SceneError, match=r"holds arrays of 8\.\S+ bytes; at most 4e\+05 are read"):
        ContactProblem.read(path)
    monkeypatch.setattr(fclib_arrays, "MEMORY", 10_000)
    with pytest.raises(SceneError, match=r"has \d+ bytes; at most 10000 are read"):
        ContactProblem.read(path)


LOCAL_MISTAKES = {
    "V without R": (change("fclib_local/R", None), "/fclib_local/R is missing: V and R come together"),
    "V of other rows": (change("fclib_local/V/m", np.array([11], INT)), "V/m = 11 must be 12"),
    "not symmetric": (change("fclib_local/W/x", np.arange(146.0)), "W, V, R must be symmetric"),
    "not positive": (change("fclib_local/R/x", np.zeros(6)), "W, V, R must be positive semi-definite"),
}


@pytest.mark.parametrize("name", LOCAL_MISTAKES)
def test_mistakes_of_local_problems(tmp_path: Path, name: str) -> None:
    path = tmp_path / "local.hdf5"
    local_file(path)
    act, words = LOCAL_MISTAKES[name]
    with h5py.File(path, "r+") as file:
        act(file)
    with pytest.raises(SceneError, match=words):
        ContactProblem.read(path)


def test_rolling_in_the_plane_is_refused(tmp_path: Path) -> None:
    rolling().write(tmp_path / "p.hdf5")
    with h5py.File(tmp_path / "p.hdf5", "r+") as file:
        change("fclib_global_rolling/spacedim", np.array([3], INT))(file)
    with pytest.raises(
        SceneError, match="spacedim = 3 must be 5; rolling contacts in the plane are not read"
    ):
        ContactProblem.read(tmp_path / "p.hdf5")


def test_files_that_are_none(tmp_path: Path) -> None:
    """Missing, a folder, no HDF5, cut off: one line each; nothing that is no problem is overwritten."""
    text, cut = tmp_path / "text.hdf5", tmp_path / "cut.hdf5"
    text.write_text("hello")
    whole().write(cut)
    cut.write_bytes(cut.read_bytes()[:3000])
    cases = ((tmp_path / "none.hdf5", "cannot be read: No such file"), (tmp_path, "is no regular file"))
    for path, words in (*cases, (text, "is no HDF5 file"), (cut, "is damaged: HDF5")):
        with pytest.raises(SceneError, match=words):
            ContactProblem.read(path)
    with pytest.raises(SceneError, match="exists and is not a contact problem"):
        whole().write(text)
    whole().write(text, force=True)
    whole().write(text)
    with pytest.raises(SceneError, match="ends in"):
        whole().write(tmp_path / "p.txt")
    with pytest.raises(SceneError, match="there is no directory"):
        whole().write(tmp_path / "no" / "p.hdf5")


def test_damaged_files(tmp_path: Path) -> None:
    """Bytes that flipped: another problem, or one line; never a crash."""
    path = tmp_path / "p.hdf5"
    whole().write(path)
    good = path.read_bytes()
    rng = np.random.default_rng(3)
    refused: list[str] = []
    for _ in range(15):
        data = bytearray(good)
        for at in rng.integers(0, min(len(data), 4000), 3):
            data[at] = int(rng.integers(256))
        path.write_bytes(bytes(data))
        try:
            ContactProblem.read(path)
        except SceneError as error:
            refused.append(str(error))
    assert refused
    assert not any("\n" in words for words in refused)
