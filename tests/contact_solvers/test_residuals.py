"""The certificate lets no wrong solution pass, and does not depend on the units."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from contact_cases import CASES, Contact, recorded, spatial

from implicit_geom.solvers.contact.problem import ContactProblem
from implicit_geom.solvers.contact.solution import ContactSolution, solution_of
from implicit_geom.solvers.contact.solve import solve_contact

Spoilt = Callable[[ContactSolution], ContactSolution]


def _with(found: ContactSolution, p: np.ndarray) -> ContactSolution:
    """The solution that other impulses give, momentum kept."""
    return solution_of(found.problem, p / found.problem.scaling)


def _changed(change: Callable[[np.ndarray], None]) -> Spoilt:
    def spoil(found: ContactSolution) -> ContactSolution:
        p = found.impulse.reshape(-1, found.problem.dim).copy()
        change(p)
        return _with(found, p.ravel())

    return spoil


def _scale(rows: slice, factor: float) -> Spoilt:
    def change(p: np.ndarray) -> None:
        p[:, rows] *= factor

    return _changed(change)


def _turn(p: np.ndarray) -> None:
    p[:, 1:3] = p[:, [2, 1]] * (-1, 1)


def _moved(found: ContactSolution) -> ContactSolution:
    v = found.velocity + 1e-5
    return ContactSolution(found.problem, v, found.impulse, found.multiplier)


WRONG: dict[str, tuple[str, Spoilt, tuple[str, ...]]] = {
    "no impulses": ("sliding", _scale(slice(0, 3), 0.0), ("signorini",)),
    "too light": ("at rest", _scale(slice(0, 1), 0.999), ("signorini",)),
    "too heavy": ("at rest", _scale(slice(0, 1), 1.001), ("signorini",)),
    "tension": ("opening", _changed(lambda p: p.__setitem__((slice(None), 0), -1e-4)), ("signorini", "cone")),
    "too much friction": ("sliding", _scale(slice(1, 3), 1.001), ("cone", "dissipation")),
    "too little friction": ("sliding", _scale(slice(1, 3), 0.999), ("dissipation",)),
    "friction pushes": ("sliding", _scale(slice(1, 3), -1.0), ("dissipation",)),
    "friction across": ("sliding", _changed(_turn), ("dissipation",)),
    "slips within the cone": ("sticks on an incline", _scale(slice(1, 3), 0.9), ("dissipation",)),
    "too little torsion": ("torsion", _scale(slice(3, 4), 0.999), ("dissipation",)),
    "too much rolling": ("rolling", _scale(slice(3, 5), 1.001), ("cone", "dissipation")),
    "too little rolling": ("rolling", _scale(slice(3, 5), 0.999), ("dissipation",)),
    "momentum": ("at rest", _moved, ("momentum",)),
    "joint": ("guided", _moved, ("bilateral",)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_solutions(wrong: str) -> None:
    """What is wrong by a thousandth or less is far above the tolerance in the law that it breaks."""
    name, spoil, broken = WRONG[wrong]
    found = solve_contact(CASES[name]().problem)
    assert found.converged
    spoilt = spoil(found)
    assert not spoilt.converged
    for law in broken:
        assert spoilt.residuals[law] > 1e-6, (law, spoilt.residuals)


@pytest.mark.parametrize("part", ["velocity", "impulse", "multiplier"])
def test_numbers_that_are_none(part: str) -> None:
    """A NaN anywhere is no solution."""
    found = solve_contact(CASES["guided"]().problem)
    arrays = {name: getattr(found, name).copy() for name in ("velocity", "impulse", "multiplier")}
    arrays[part][-1] = np.nan
    assert ContactSolution(found.problem, **arrays).error == np.inf


@pytest.mark.parametrize("moments", [0, 1, 2])
@pytest.mark.parametrize(("length", "mass", "time"), [(1e3, 1.0, 1.0), (1.0, 1e3, 1.0), (1e3, 1e3, 1e3)])
def test_units(moments: int, length: float, mass: float, time: float) -> None:
    """Residuals of impulses far from a solution change with the units as a speed does."""
    rng = np.random.default_rng(1)
    contacts = [Contact((0.3, 0.1, -0.2)), Contact((-0.3, 0.1, -0.2)), Contact((0, 0, 0.2), 1, 0)]
    more = {0: {}, 1: {"e": (1, 1, 0.1)}, 2: {"mu_r": [0.1] * 3}}[moments]
    v = rng.normal(size=12)
    one = spatial([1.0, 3.0], contacts, v, moments=moments, **more, G=np.eye(12)[:, [1, 10]], b=[0.1, 5.0])
    speeds = np.tile([length / time] * 3 + [1 / time] * 3, 2)
    inertias = np.tile([mass] * 3 + [mass * length**2] * 3, 2)
    d = one.dim
    moves = np.ones(12)
    moves[3:6] = moves[9:] = length
    rows = np.ones(d)
    rows[3:] = 1 / length  # angular velocities
    e = np.ones(d - 1)
    if moments == 1:
        e[2] = 0.1 * length
    two = ContactProblem(
        M=one.M.toarray() * inertias,
        H=one.H.toarray() * moves[:, None] * np.tile(rows, 3),
        v_free=one.v_free * speeds,
        mu=one.mu,
        e=e,
        mu_r=None if moments < 2 else [0.1 * length] * 3,
        G=one.G,
        b=one.b * speeds[[1, 10]],
        dim=d,
    )
    p, multiplier = rng.normal(size=3 * d), rng.normal(size=2)
    impulses = mass * length / time / np.tile(rows, 3)
    first = ContactSolution(one, v + 0.1, p, multiplier).residuals
    scale = inertias * speeds
    second = ContactSolution(two, speeds * (v + 0.1), impulses * p, multiplier * scale[[1, 10]]).residuals
    for law, value in first.items():
        assert value > 1e-3
        assert second[law] == pytest.approx(value * length / time, rel=1e-9), law


def test_a_recorded_problem_spoilt() -> None:
    """One contact of many with an impulse that is wrong by a millionth is seen."""
    found = solve_contact(recorded("arch11"))
    assert found.converged
    p = found.impulse.copy()
    p[3 * np.argmax(p[::3])] *= 1 + 1e-6
    assert not _with(found, p).converged
