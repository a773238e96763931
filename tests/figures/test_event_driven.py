"""The event-driven references conserve what they must, and meet closed forms."""

from dataclasses import replace

import numpy as np
import pytest

from implicit_geom import shapes
from implicit_geom.experiments.event_driven import (
    GRAVITY,
    Body,
    Flight,
    Rocking,
    State,
    bounces,
    first_impacts,
    states_at,
)

Q = np.array([0.9, 0.2, -0.3, 0.25]) / np.linalg.norm([0.9, 0.2, -0.3, 0.25])
EGG = shapes.ellipsoid(0.22, 0.2, 0.18)


def thrown(height: float = 0.7) -> State:
    return State(0.0, np.array([0, 0, height]), Q, np.array([0.7, -0.3, 0]), np.array([0.8, -3.0, 1.0]))


def test_flight_keeps_energy_and_angular_momentum() -> None:
    body = Body(shapes.box(0.3, 0.2, 0.1))
    flight = Flight(body, thrown(5.0), 0.9)
    first, last = flight.at(0.0), flight.at(0.9)
    assert body.energy(last) == pytest.approx(body.energy(first), rel=1e-12)
    spins = [body.inertia_at(s) @ s.w for s in (first, last)]
    np.testing.assert_allclose(*spins, atol=1e-12)
    assert np.linalg.norm(last.w - first.w) > 0.1  # it tumbles


def test_spin_turns_the_body() -> None:
    """R' = [w]x R, by central differences: the quaternion's rate and the spin are of one frame."""
    flight = Flight(Body(EGG), thrown(), 0.2)
    before, here, after = (flight.at(t).R for t in (0.1 - 1e-5, 0.1, 0.1 + 1e-5))
    turning = (after - before) / 2e-5 @ here.T
    w = flight.at(0.1).w
    np.testing.assert_allclose([turning[2, 1], turning[0, 2], turning[1, 0]], w, atol=1e-8)


@pytest.mark.parametrize("mu", [0.0, 0.1, 1.0])
def test_an_impact_acts_at_the_lowest_point(mu: float) -> None:
    """Nothing changes about that point, its normal velocity is returned, and e = 1, mu = 0 loses nothing."""
    body = Body(EGG, mass=2.0, mu=mu, e=1.0 if mu == 0 else 0.6)
    impacts = first_impacts(body, thrown(), 3.0, 5)
    assert len(impacts) == 5
    for impact in impacts:
        gap, r = body.lowest(impact.before)
        assert abs(gap) < 1e-14
        moments = [body.inertia_at(s) @ s.w - 2.0 * np.cross(r, s.v) for s in (impact.before, impact.after)]
        np.testing.assert_allclose(*moments, atol=1e-12)
        u = [body.contact(s, r)[1][0] for s in (impact.before, impact.after)]
        assert u[1] == pytest.approx(-body.e * u[0], rel=1e-10)
        lost = body.energy(impact.before) - body.energy(impact.after)
        assert abs(lost) < 1e-12 if mu == 0 else lost > 0


def test_a_hundred_bounces_of_a_ball() -> None:
    """Dropped by 1 m with e = 0.8: impact k at sqrt(2/g) (1 + 2 (e + ... + e^k)), very soon ones too."""
    e = 0.8
    body = Body(shapes.sphere(0.1), e=e)
    start = State(0.0, np.array([0, 0, 1.1]), np.array([1.0, 0, 0, 0]), np.zeros(3), np.zeros(3))
    impacts = first_impacts(body, start, 10.0, 100)
    k = np.arange(100)
    exact = np.sqrt(2 / GRAVITY) * (1 + 2 * e * (1 - e**k) / (1 - e))
    np.testing.assert_allclose([i.before.time for i in impacts], exact, rtol=1e-9)
    np.testing.assert_allclose([i.approach for i in impacts], np.sqrt(2 * GRAVITY) * e**k, rtol=1e-6)


def test_states_are_those_of_the_flights() -> None:
    """Energy falls at impacts alone, and by friction and restitution: a disc in the plane."""
    flat = Body(shapes.disc(0.2), mu=0.1, e=0.7)
    start = State(0.0, np.array([0.0, 0.7]), np.array(0.0), np.array([1.0, 0.0]), np.array([2.0]))
    times = np.linspace(0.05, 1.2, 24)
    plane = states_at(flat, start, times)
    energy = np.array([flat.energy(s) for s in plane])
    impacts = [i.before.time for i in first_impacts(flat, start, 1.2, 9)]
    crossed = np.diff(np.searchsorted(impacts, times)) > 0
    assert np.all((np.diff(energy) < -1e-3) == crossed)
    assert np.max(np.abs(np.diff(energy)[~crossed])) < 1e-12


def test_the_last_flight_has_no_impact() -> None:
    found = list(bounces(Body(EGG, gravity=0.0), replace(thrown(), v=np.array([0.0, 0, 1])), 1.0))
    assert len(found) == 1
    assert found[0][1] is None


@pytest.mark.parametrize("ratio", [0.1, 0.4, 0.8])
def test_housner_is_the_law_of_a_sticking_corner(ratio: float) -> None:
    """The impulse at the corner that is struck, without slip or bounce, leaves Housner's angular velocity."""
    H = 0.5
    block, body = Rocking(ratio * H, H), Body(shapes.rectangle(ratio * H, H), mu=100.0)
    # clockwise about the left corner, so that the right one strikes
    s = State(0.0, np.array([0.0, H]), np.array(0.0), np.array([H, -ratio * H]), np.array([-1.0]))
    W, u = body.contact(s, np.array([ratio * H, -H]))
    push = -np.linalg.solve(W, u)
    spin = -1.0 + float((ratio * H * push[0] + H * push[1]) / body.inertia[0, 0])
    assert spin == pytest.approx(-block.factor, rel=1e-13)


def test_swings_of_a_slender_block() -> None:
    """cosh(p t) = 1 / (1 - theta_0 / alpha) for small angles [Housner 1963]; energy is kept in a swing."""
    block = Rocking(0.002, 0.1)
    angle = 0.6 * block.alpha
    p = np.sqrt(3 * GRAVITY / (4 * np.hypot(block.b, block.H)))
    instants = block.impacts(angle, 10.0)
    assert instants[0] == pytest.approx(np.arccosh(1 / 0.4) / p, rel=1e-4)
    peak = 1 - np.sqrt(1 - block.factor**2 * (1 - 0.4**2))  # of the next swing, over alpha
    assert instants[1] - instants[0] == pytest.approx(2 * np.arccosh(1 / (1 - peak)) / p, rel=1e-4)
    times = np.linspace(0, instants[0], 9)
    theta, rate = block.states_at(angle, times).T
    energy = rate**2 / 2 + p**2 * np.cos(block.alpha - theta)
    assert np.ptp(energy) < 1e-11 * p**2
    after = block.states_at(angle, instants[:1] + 1e-9)[0]
    assert after[1] == pytest.approx(block.factor * rate[-1], rel=1e-6)


def test_a_block_comes_to_stand() -> None:
    """Infinitely many swings in a finite time: each is shorter by the factor of the angular velocity."""
    block = Rocking(0.2, 0.5)
    instants = block.impacts(0.1, 3.0)
    swings = np.diff(instants)
    assert swings[-1] / swings[-2] == pytest.approx(block.factor, rel=1e-3)
    assert not np.any(block.states_at(0.1, np.array([0.0, instants[-1] + 0.1]))[-1])
