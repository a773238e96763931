"""MJ14's four solvers: one contact by hand, bilateral rows by elimination, Lemke's answers, loud failures."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from implicit_geom.experiments.sphere_on_plane import GRAVITY, MU, contact_problem, slide
from implicit_geom.interface.errors import SceneError
from implicit_geom.solvers import lcp
from implicit_geom.solvers.contact.mj14 import entries
from implicit_geom.solvers.contact.mj14.directions import corners
from implicit_geom.solvers.contact.mj14.path import path_reason
from implicit_geom.solvers.contact.mj14.pyramid_lcp import PyramidLCP
from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solve import solve_contact

PYRAMIDS, CONES = ("mlcp-fb-rlm", "mlcp-fb-plm"), ("mncp-rlm", "mncp-plm")
ALL = (*PYRAMIDS, *CONES)


def random_problem(
    seed: int, contacts: int = 3, bodies: int = 4, dim: int = 3, mu: float = 0.4, **more: Any
) -> ContactProblem:
    """Bodies of six rows pressed at contacts of random wrenches."""
    rng = np.random.default_rng(seed)
    n = 6 * bodies
    M = np.diag(rng.uniform(0.5, 2, n))
    return ContactProblem(
        M=M,
        H=rng.normal(size=(n, dim * contacts)),
        v_free=rng.normal(size=n),
        w=rng.normal(size=dim * contacts) - 2 * (np.arange(dim * contacts) % dim == 0),  # pressed
        mu=np.full(contacts, mu),
        **more,
    )


@pytest.mark.parametrize("name", ALL)
def test_one_contact_slides_sticks_and_opens(name: str) -> None:
    """A step of a sphere by hand: friction mu m g h against the slip; what stops it; none."""
    h = 0.01
    slides = solve_contact(contact_problem(np.array([2.0, 0, 0, 0, 0, 0]), h, 0.0), name)
    np.testing.assert_allclose(slides.impulse, [GRAVITY * h, -MU * GRAVITY * h, 0], atol=1e-12)
    slip = 3.5 * MU * GRAVITY * h / 2  # half of what friction can stop
    sticks = solve_contact(contact_problem(np.array([slip, 0, 0, 0, 0, 0]), h, 0.0), name)
    np.testing.assert_allclose(sticks.velocity, [5 / 7 * slip, 0, 0, 0, 5 / 7 * slip, 0], atol=1e-12)
    opens = solve_contact(contact_problem(np.array([1.0, 0, 1, 0, 0, 0]), h, 0.0), name)
    np.testing.assert_allclose(opens.impulse, 0, atol=1e-12)
    for found in (slides, sticks, opens):
        assert found.converged, found.residuals
        assert found.info["residual"] < 1e-9
        assert found.info["status"] in ("solved", "rounding")
        assert found.info["size"] == (6 if name in PYRAMIDS else 3)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dim", [2, 3, 4, 5])
def test_bilateral_rows_and_rows_of_all_kinds(name: str, dim: int) -> None:
    """Its own equations are solved, bilateral rows hold, and the cone is kept where the law is the cone's."""
    n_b, rng = 4, np.random.default_rng(5)
    more: dict[str, Any] = {"mu_r": [0.1] * 3} if dim == 5 else {}
    p = random_problem(2, dim=dim, G=rng.normal(size=(24, n_b)), b=rng.normal(size=n_b), **more)
    found = solve_contact(p, name)
    assert found.info["residual"] < 1e-9
    assert found.residuals["bilateral"] < 1e-9
    assert found.residuals["momentum"] < 1e-9
    assert found.residuals["signorini"] < 1e-9
    exact = name in CONES or dim == 2
    assert found.converged == exact, found.residuals


@pytest.mark.parametrize("name", ALL)
def test_a_pinned_body_is_the_one_in_minimal_coordinates(name: str) -> None:
    """A rod on a ball joint strikes a plane: three bilateral rows, or three rotations about the pin."""
    length, inertia = 1.5, np.diag([0.01, 0.3, 0.3])
    c, tip = np.array([length / 2, 0, 0]), np.array([length, 0.1, -0.4])
    axes = np.array([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]])

    def rows(at: np.ndarray, directions: np.ndarray) -> np.ndarray:
        return np.concatenate([directions, np.cross(at, directions)], axis=1).T

    M = np.block([[2.0 * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), inertia]])
    w = np.array([0.1, 3.0, -0.8])  # rad/s: the tip goes down and sideways
    T = np.concatenate([np.cross(np.eye(3), c).T, np.eye(3)])  # v = w x c
    v_free = T @ w
    G = rows(-c, np.eye(3))
    assert np.abs(G.T @ v_free).max() < 1e-15
    full = ContactProblem(M=M, H=rows(tip - c, axes), v_free=v_free, mu=[0.3], G=G)
    small = ContactProblem(M=T.T @ M @ T, H=T.T @ rows(tip - c, axes), v_free=w, mu=[0.3])
    one, two = solve_contact(full, name), solve_contact(small, name)
    assert one.info["size"] == two.info["size"] + 3
    assert one.residuals["bilateral"] < 1e-12
    np.testing.assert_allclose(one.velocity, T @ two.velocity, atol=1e-10)
    np.testing.assert_allclose(one.impulse, two.impulse, atol=1e-10)
    # by hand, without friction: what stops the tip, of the inertia about the pin
    smooth = solve_contact(ContactProblem(M=M, H=rows(tip - c, axes), v_free=v_free, mu=[0.0], G=G), name)
    arm = np.cross(tip, axes[0])
    about_pin = np.diag(inertia) + 2.0 * np.array([0, c[0] ** 2, c[0] ** 2])
    np.testing.assert_allclose(smooth.impulse, [-(arm @ w) / (arm**2 @ (1 / about_pin)), 0, 0], atol=1e-10)


@pytest.mark.parametrize("name", PYRAMIDS)
@pytest.mark.parametrize("seed", range(4))
def test_lemke_finds_the_same_velocities(name: str, seed: int) -> None:
    p = random_problem(seed)
    pyramids = PyramidLCP(p, directions=6)
    lemke = lcp.solve_lcp(pyramids.lcp.M, pyramids.lcp.q)
    assert lemke.converged
    found = solve_contact(p, name, directions=6)
    np.testing.assert_allclose(found.velocity, p.velocity(pyramids.impulses(lemke.z)), atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_both_forms_with_the_cone_agree_and_many_corners_come_near(seed: int) -> None:
    p = random_problem(seed, mu=0.1)
    one, two = (solve_contact(p, name) for name in CONES)
    assert one.converged
    assert two.converged
    np.testing.assert_allclose(one.contact_velocity, two.contact_velocity, atol=1e-7)
    off = []
    for k in (4, 16, 64):
        found = solve_contact(p, "mlcp-fb-plm", directions=k, limit=300)
        assert found.info["residual"] < 1e-8
        off.append(np.abs(found.contact_velocity - one.contact_velocity).max())
    assert off[2] < max(0.2 * off[0], 1e-7)


@pytest.mark.parametrize("name", PYRAMIDS)
def test_a_pyramid_is_not_the_cone_and_says_so(name: str) -> None:
    """Negative control: its own equations hold to rounding, the certificate fails; aligned it does not."""
    p = contact_problem(np.array([2.0, 0, 0, 0, 0, 0]), 0.01, 0.0)
    turned = solve_contact(p, name, turn=np.pi / 8)
    assert turned.info["residual"] < 1e-12
    assert not turned.converged
    assert turned.residuals["dissipation"] > 1e-4
    frame = solve_contact(contact_problem(np.array([2.0, 0, 0, 0, 0, 0]), 0.01, np.pi / 8), name)
    np.testing.assert_allclose(turned.velocity, frame.velocity, atol=1e-12)
    oblique = contact_problem(np.array([1.0, 2.0, 0, 0, 0, 0]), 0.01, 0.0)
    assert not solve_contact(oblique, name, turn=np.pi / 8).converged
    assert solve_contact(oblique, name, turn=np.pi / 8, aligned=True, directions=3).converged


@pytest.mark.parametrize("name", ALL)
def test_a_search_that_is_cut_short_is_no_solution(name: str) -> None:
    found = solve_contact(random_problem(1), name, limit=1)
    assert found.info["status"] == "limit"
    assert found.iterations == 1
    assert not found.converged


@pytest.mark.parametrize("name", ALL)
def test_a_start_at_the_solution_stays_there(name: str) -> None:
    """Also with ellipsoids and other units: the start is an impulse of the user's rows."""
    p = random_problem(3, contacts=2, e=(0.5, 1.5))
    first = solve_contact(p, name, scaled=True)
    again = solve_contact(p, name, start=first)
    np.testing.assert_allclose(again.velocity, first.velocity, atol=1e-8)
    if name in CONES:
        assert again.iterations <= 3


@pytest.mark.parametrize("name", ALL)
def test_units_do_not_matter_when_scaled(name: str) -> None:
    """In grams or tonnes: the same iterations, the same velocities."""
    runs = []
    for unit in (1e-3, 1.0, 1e3):
        p = random_problem(4)
        same = ContactProblem(M=unit * p.M, H=p.H, v_free=p.v_free, mu=p.mu)
        runs.append(solve_contact(same, name, scaled=True))
    np.testing.assert_allclose(runs[0].velocity, runs[2].velocity, atol=1e-9)
    assert max(r.iterations for r in runs) - min(r.iterations for r in runs) <= 2


def test_a_pyramid_starts_at_the_solution_where_friction_lies_along_a_corner() -> None:
    """Impulses, slip speeds and bilateral impulses of the start leave nothing of the equations."""
    p = contact_problem(np.array([2.0, 0, 0, 0, 0, 0]), 0.01, 0.0)
    loose = np.zeros((6, 1))
    loose[5] = 1.0  # a row that lets the sphere not spin about the normal
    p = ContactProblem(M=p.M, H=p.H, v_free=p.v_free + 0.3 * loose[:, 0], mu=p.mu, G=loose)
    pyramids = PyramidLCP(p)
    z = pyramids.start(np.array([GRAVITY * 0.01, -MU * GRAVITY * 0.01, 0]))
    assert z[0] == pytest.approx(-0.3 * 0.4)
    assert np.abs(pyramids.lcp.phi(z)).max() < 1e-15


@pytest.mark.parametrize("dim", [2, 3, 4, 5])
def test_corners_surround_the_axis(dim: int) -> None:
    """Whatever the slip, some corner is against it, and all are on the disc's rim."""
    p = random_problem(0, dim=dim, **({"mu_r": [0.1] * 3} if dim == 5 else {}))
    u = np.random.default_rng(1).normal(size=(50, dim))
    for rows, D in corners(p, 5, 0.3, False, None):
        np.testing.assert_allclose(np.linalg.norm(D, axis=2), 1)
        assert np.all(np.min(np.einsum("nkw,mw->mnk", D, u[:, rows]), axis=2) < 0)


def test_too_many_unknowns_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST", 8)
    for name in ALL:
        found = solve_contact(random_problem(0), name)
        assert found.info["status"] == "too large"
        assert not found.converged


@pytest.mark.parametrize(("option", "words"), [({"directions": 2}, "directions"), ({"slip": [1, 2]}, "slip")])
def test_bad_options_are_named(option: dict[str, Any], words: str) -> None:
    with pytest.raises(SceneError, match=words):
        solve_contact(random_problem(0), "mlcp-fb-rlm", **option)


def test_no_contacts() -> None:
    p = ContactProblem(M=np.eye(6), H=np.zeros((6, 0)), v_free=np.ones(6), mu=[])
    for name in ALL:
        assert solve_contact(p, name).converged


def test_path_without_gamspy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SceneError, match=r"implicit-geom\[path\]"):
        solve_contact(random_problem(0), "path")


@pytest.mark.skipif(bool(path_reason()), reason=path_reason() or "GAMSPy is there")
def test_path_solves_the_same_problem() -> None:
    """With bilateral rows, from nothing; and at 45 degrees it finds no velocity across the motion."""
    rng = np.random.default_rng(1)
    p = random_problem(2, G=rng.normal(size=(24, 2)), b=rng.normal(size=2))
    other = solve_contact(p, "mlcp-fb-plm")
    found = solve_contact(p, "path")
    assert found.info["residual"] < 1e-8
    np.testing.assert_allclose(found.velocity, other.velocity, atol=1e-7)
    motion = slide("path", step=0.1, duration=0.3, frame=np.pi / 4)
    assert np.abs(motion["v_y"]).max() < 1e-9
