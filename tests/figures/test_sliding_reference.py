"""The sliding reference: closed forms of a sphere and a coin, what it conserves, and a stepper's limit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Scene, shapes, simulate
from implicit_geom.experiments.ellipsoid_reference import rotation
from implicit_geom.experiments.euler_disc import steady_rolling
from implicit_geom.experiments.regression import order
from implicit_geom.experiments.sliding_reference import (
    Body,
    Friction,
    Motion,
    ellipsoid,
    integrate,
    lowest,
    rim,
    touching,
)

REFERENCES = Path(__file__).parents[1] / "references"
TURN = np.array([0.8, 0.3, -0.2, 0.4]) / np.linalg.norm([0.8, 0.3, -0.2, 0.4])
SPIN = np.array([3.0, -5.0, 12.0])
LUMP = Body(  # nothing about it is symmetric
    ellipsoid(np.array([0.3, 0.25, 0.2])),
    2.0,
    np.array([[0.05, 0.004, -0.003], [0.004, 0.06, 0.002], [-0.003, 0.002, 0.07]]),
    np.array([0.02, -0.03, 0.01]),
)
COIN = Body(rim(0.05, -0.0025), 0.1, 0.1 * np.diag([6.5e-4, 6.5e-4, 12.5e-4]), np.zeros(3))
EGG = Body(ellipsoid(np.array([0.02, 0.02, 0.03])), 0.05, 0.01 * np.diag([13e-4, 13e-4, 8e-4]), np.zeros(3))

TOP = Body(ellipsoid(np.full(3, 0.02)), 0.05, 8e-6 * np.eye(3), np.array([0.0, 0.0, -0.006]))


def motion(
    body: Body, friction: Friction, duration: float, *, spin: np.ndarray = SPIN, turn: np.ndarray = TURN
) -> Motion:
    x, v = touching(body, turn, spin, velocity=(0.3, -0.2))
    times = np.linspace(0, duration, 9)
    return integrate(
        body, friction, position=x, orientation=turn, velocity=v, angular_velocity=spin, times=times
    )


def angular_momentum(body: Body, found: Motion) -> np.ndarray:
    """(T, 3) about the centre of mass, world axes."""
    R = np.array([rotation(q) for q in found.orientation])
    w = np.einsum("tji,tj->ti", R, found.angular_velocity)
    return np.einsum("tij,jk,tk->ti", R, body.inertia, w)


def jellett(body: Body, found: Motion) -> np.ndarray:
    r = np.array([lowest(body, rotation(q)) for q in found.orientation])
    return -np.einsum("ti,ti->t", angular_momentum(body, found), r)


@pytest.mark.parametrize("name", ["sphere_sliding", "torsional_friction"])
def test_sphere_follows_its_closed_form(name: str) -> None:
    """Every state before the slip ends, to 1e-10: sliding, backspin, spin alone, both together."""
    for case in json.loads((REFERENCES / f"{name}.json").read_text())["cases"]:
        given = case["inputs"]
        stop = case.get("t_roll", case.get("t_stop_slip"))
        states = [s for s in case["states"] if s["t"] <= 0.991 * stop]
        assert len(states) >= 5
        sphere = Body(
            ellipsoid(np.full(3, given["r"])), given["m"], given["I"] * np.eye(3), np.zeros(3), given["g"]
        )
        found = integrate(
            sphere,
            Friction(given["mu"], e_r=given.get("e_r", 0.0)),
            position=given["x0"],
            orientation=given["q0"],
            velocity=given["v0"],
            angular_velocity=given["omega0"],
            times=np.array([s["t"] for s in states]),
        )
        np.testing.assert_allclose(found.position, [s["x"] for s in states], atol=1e-10)
        np.testing.assert_allclose(found.velocity, [s["v"] for s in states], atol=1e-10)
        np.testing.assert_allclose(found.angular_velocity, [s["omega"] for s in states], atol=1e-10)


@pytest.mark.parametrize("body", [LUMP, COIN], ids=["lump", "coin"])
def test_without_friction_energy_and_momenta_are_conserved(body: Body) -> None:
    """Energy, horizontal momentum and the vertical angular momentum; the gap stays closed."""
    found = motion(body, Friction(0.0), 0.2)
    assert np.ptp(found.energy) < 1e-11 * found.energy[0]
    assert np.max(np.ptp(found.velocity[:, :2], axis=0)) < 1e-12
    L = angular_momentum(body, found)
    assert np.ptp(L[:, 2]) < 1e-11 * np.linalg.norm(L[0])
    assert np.ptp(L[:, 0]) > 1e-3 * np.linalg.norm(L[0])  # it does tumble
    assert np.max(np.abs(found.gap)) < 1e-12
    assert np.max(np.abs(found.gap_rate)) < 1e-11
    assert np.min(found.normal_force) > 0


@pytest.mark.parametrize("body", [LUMP, COIN], ids=["lump", "coin"])
def test_friction_takes_the_energy_that_is_lost(body: Body) -> None:
    """Energy and friction loss balance, the loss never shrinks, friction lies on the ellipsoid's law."""
    found = motion(body, Friction(0.3, e_t=1.0, e_o=0.6, e_r=0.02), 0.15)
    lost = found.energy[0] - found.energy
    assert lost[-1] > 0.01 * found.energy[0]
    np.testing.assert_allclose(found.friction_loss, lost, atol=1e-11 * found.energy[0])
    assert np.all(np.diff(found.friction_loss) > 0)
    assert np.max(np.abs(found.gap)) < 1e-12


def test_steady_rolling_coin_stays_as_it_is() -> None:
    """Closed form: centre at rest, contact point not slipping, tilt and precession constant."""
    tilt = np.radians(25)
    orientation, spin, precession = steady_rolling(COIN, radius=0.05, thickness=0.005, tilt=tilt)
    x, v = touching(COIN, orientation, spin)
    turns = 2 * np.pi / precession
    found = integrate(
        COIN, Friction(0.0), position=x, orientation=orientation, velocity=v, angular_velocity=spin,
        times=np.array([0, turns / 4, turns]),
    )  # fmt: skip
    assert np.max(np.abs(found.position - x)) < 1e-12
    assert np.max(np.abs(found.slip[:, :2])) < 1e-11
    axis = np.array([rotation(q)[:, 2] for q in found.orientation])
    np.testing.assert_allclose(axis[1], [0, np.sin(tilt), np.cos(tilt)], atol=1e-11)
    np.testing.assert_allclose(axis[2], axis[0], atol=1e-11)
    np.testing.assert_allclose(found.normal_force, 0.981, rtol=1e-11)


def test_jellett_quantity_of_a_tippe_top() -> None:
    """-L . r of a sphere with its centre of mass off: kept by sliding friction, however anisotropic.

    Not by torsional friction, and on a spheroid only as far as the angular momentum is vertical.
    """
    turn, spin = np.array([np.cos(0.3), 0, np.sin(0.3), 0]), np.array([2.0, 1.0, 100.0])
    kept = jellett(TOP, motion(TOP, Friction(0.2, e_o=0.7), 0.1, spin=spin, turn=turn))
    assert np.ptp(kept) < 1e-11 * kept[0]
    lost = jellett(TOP, motion(TOP, Friction(0.2, e_r=0.005), 0.1, spin=spin, turn=turn))
    assert np.ptp(lost) > 1e-2 * lost[0]
    egg = jellett(EGG, motion(EGG, Friction(0.2), 0.05, spin=0.5 * spin, turn=turn))
    assert np.ptp(egg) > 1e-3 * egg[0]


def test_end_of_contact_and_of_sliding_are_errors() -> None:
    sphere = Body(ellipsoid(np.ones(3)), 1.0, 0.4 * np.eye(3), np.zeros(3))
    start = {"position": (0, 0, 1), "orientation": (1, 0, 0, 0), "angular_velocity": (0, 0, 0)}
    with pytest.raises(ArithmeticError, match=r"stops sliding at t = 0\.2912"):
        integrate(sphere, Friction(0.2), **start, velocity=(2, 0, 0), times=np.array([0, 1.0]))
    with pytest.raises(ArithmeticError, match="lifts off"):
        motion(LUMP, Friction(0.0), 0.2, spin=10 * SPIN)


@pytest.mark.parametrize(
    ("body", "shape", "friction"),
    [
        (LUMP, shapes.ellipsoid(0.3, 0.25, 0.2), Friction(0.3, e_t=1.0, e_o=0.6, e_r=0.02)),
        (COIN, shapes.cylinder(0.05, 0.005), Friction(0.3, e_r=0.01)),
    ],
    ids=["lump", "coin"],
)
def test_small_steps_approach_the_reference(body: Body, shape: shapes.Shape, friction: Friction) -> None:
    """implicit-euler tends to it with first order: another formulation of the same law."""
    duration = 0.02
    exact = motion(body, friction, duration)
    steps, errors = np.array([1e-3, 5e-4, 2.5e-4]), []
    for h in steps:
        scene = Scene(gravity=(0, 0, -9.81))
        scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
        scene.add(
            "body", shape, mass=body.mass, inertia=body.inertia, com=body.com, position=exact.position[0],
            orientation=TURN, velocity=exact.velocity[0], angular_velocity=SPIN,
        )  # fmt: skip
        law = {"mu": friction.mu, "e_t": friction.e_t, "e_o": friction.e_o, "e_r": friction.e_r}
        scene.friction(**law, direction=(1, 0, 0))
        run = simulate(scene, duration=duration, step=h, stepper="implicit-euler", progress=False)["body"]
        errors.append(
            [
                np.linalg.norm(run.position[-1] - exact.position[-1]),
                np.linalg.norm(run.velocity[-1] - exact.velocity[-1]),
                np.linalg.norm(run.angular_velocity[-1] - exact.angular_velocity[-1]),
            ]
        )
    for error in np.array(errors).T:
        assert 0.85 < order(steps, error) < 1.15
