"""The native contact solver: its answers obey the law, as written anew in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from native_contact import (
    contact_velocities,
    law_error,
    momentum_error,
    random_problem,
    recorded,
    solved,
)

from implicit_geom.engine.library import library

pytestmark = pytest.mark.skipif(library() is None, reason="installed without the native engine")

BOUND = 1e-8  # m/s
ENOUGH = 1e-9
MOST = 250  # contacts of recorded problems that are solved here
UNSOLVED = ("chain mu 0.2",)  # and the solver says so
FILES = ("contact_problems.npz", "scene_problems.npz")


@pytest.mark.parametrize("file", FILES)
def test_recorded_problems(file: str) -> None:
    """Stacks, piles, arches and wedges, mass ratios of 1e4: all certified."""
    some = 0
    for name, q in recorded(file):
        if len(q.mu) > MOST:
            continue
        a = solved(q, 1e-12, ENOUGH)
        if name in UNSOLVED:
            assert a.error > ENOUGH or law_error(q, a) <= BOUND
            continue
        scale = max(1.0, float(np.max(np.abs(q.v), initial=0.0)))
        assert momentum_error(q, a) <= 1e-10 * scale, name
        assert law_error(q, a) <= BOUND * scale, name
        some += 1
    assert some >= 10


@pytest.mark.parametrize(("rows", "dof"), [(1, 6), (3, 6), (4, 6), (1, 3), (2, 3)])
def test_random_problems(rows: int, dof: int) -> None:
    """Without friction, with it, and with friction against spin; in space and in the plane."""
    for seed in range(60):
        q = random_problem(seed, rows, dof)
        a = solved(q, 1e-12, ENOUGH)
        assert momentum_error(q, a) <= 1e-10, seed
        assert law_error(q, a) <= BOUND, seed
        np.testing.assert_allclose(a.u, contact_velocities(q, a.v), rtol=0, atol=1e-10)


def test_the_error_is_the_solvers_own() -> None:
    """What the solver calls its error is of the size of the law's, above rounding."""
    for seed in range(20):
        q = random_problem(seed, 3, 6)
        a = solved(q, 1e-12, ENOUGH)
        assert a.error <= 1e-9
        assert law_error(q, a) <= 100 * a.error + 1e-12


def test_wrong_answers_are_told() -> None:
    """The certificate refuses an impulse that pulls, friction beyond its bound or the wrong way."""
    q = random_problem(7, 3, 6)
    a = solved(q, 1e-12, ENOUGH)
    pressed = int(np.argmax(a.p[:, 0]))
    assert a.p[pressed, 0] > 0.01
    slid = int(np.argmax(np.linalg.norm(a.u[:, 1:], axis=1) * (a.p[:, 0] > 1e-3)))
    changes = {"pull": (pressed, 0, -2 * a.p[pressed, 0]), "more": (slid, slice(1, 3), 0.5 * a.p[slid, 1:])}
    changes |= {"other": (slid, slice(1, 3), -2 * a.p[slid, 1:]), "half": (pressed, 0, -a.p[pressed, 0] / 2)}
    for where, rows, by in changes.values():
        p = a.p.copy()
        p[where, rows] += by
        wrong = type(a)(p, a.u, a.v, a.error)
        assert max(law_error(q, wrong), momentum_error(q, wrong)) > 1e-4
    assert momentum_error(q, type(a)(a.p, a.u, a.v + 1e-6, a.error)) > BOUND
