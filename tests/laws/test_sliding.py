"""Sliding, rolling and spinning bodies against closed forms; orders in h are measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from law_scenes import (
    STEPPERS,
    TWO,
    G,
    assert_at_rest,
    assert_lawful,
    at,
    measured_order,
    on_ground,
    reference,
)

from implicit_geom import Scene, Trajectory, shapes, simulate

BOXES = {c["name"]: c for c in reference("box_and_cylinder")["box_sliding"]}
CYLINDER = reference("box_and_cylinder")["cylinder_incline"]
TIP = reference("box_and_cylinder")["tip"]
SPHERES = {c["name"]: c for c in reference("sphere_sliding")["cases"]}
TORSION = {c["name"]: c for c in reference("torsional_friction")["cases"]}


def sphere(case: dict[str, Any], h: float, duration: float, stepper: str) -> Trajectory:
    given = case["inputs"]
    scene = on_ground(
        shapes.sphere(given["r"]),
        mass=given["m"],
        inertia=(given["I"],) * 3,
        position=given["x0"],
        velocity=given["v0"],
        angular_velocity=given["omega0"],
    )
    scene.friction(mu=given["mu"], e_r=given.get("e_r", 0.0))
    return simulate(scene, duration=duration, step=h, stepper=stepper)


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("name", SPHERES)
def test_sphere_slides_then_rolls(name: str, stepper: str) -> None:
    """Sphere sliding, then rolling: velocities exact away from the switch, and that in the right step."""
    case = SPHERES[name]
    run = sphere(case, 0.01, 2.0, stepper)
    for state in case["states"]:
        on_grid = abs(round(state["t"] / 0.01) * 0.01 - state["t"]) < 1e-9
        if not on_grid or abs(state["t"] - case["t_roll"]) < 0.01:
            continue
        k = at(run, state["t"])
        np.testing.assert_allclose(run["body"].velocity[k], state["v"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(run["body"].angular_velocity[k], state["omega"], rtol=0, atol=1e-9)
    modes = run.contacts["mode"]
    assert len(modes) == 200
    switch = round(case["t_roll"] / 0.01)
    assert set(modes[: switch - 1]) == {"slide"}
    assert set(modes[switch + 1 :]) == {"stick"}


def wrong_place(case: dict[str, Any], h: float, stepper: str) -> float:
    """How far from the closed form a sphere is after 2 s, m."""
    last = next(s for s in case["states"] if s["t"] == 2.0)
    return float(np.abs(sphere(case, h, 2.0, stepper)["body"].position[-1] - last["x"]).max())


@pytest.mark.parametrize("name", SPHERES)
def test_place_of_a_sphere_that_slides_then_rolls(name: str) -> None:
    """First order in h with Euler. With RATTLE exact but for the step of the switch: below mu g h^2 / 8.

    Where in a step the switch falls decides how much of that is left, hence the odd steps.
    """
    case = SPHERES[name]
    order = measured_order([0.04, 0.02, 0.01], lambda h: wrong_place(case, h, "implicit-euler"))
    assert 0.9 < order < 1.1
    for n in (50, 51, 52, 53, 100):
        bound = case["inputs"]["mu"] * G * (2.0 / n) ** 2 / 8
        assert wrong_place(case, 2.0 / n, "implicit-rattle") < bound


@pytest.mark.parametrize(
    ("stepper", "least", "most"), [("implicit-euler", 0.9, 1.1), ("implicit-rattle", 1.9, 2.1)]
)
@pytest.mark.parametrize("name", TORSION)
def test_sliding_and_spinning_together(name: str, stepper: str, least: float, most: float) -> None:
    """Friction ellipsoid with torsion: first or second order against 12 digits; all slip ends together."""
    case = TORSION[name]
    state = next(s for s in case["states"] if s["t"] == 0.5)

    def error(h: float) -> float:
        body = sphere(case, h, 0.5, stepper)["body"]
        wrong = [body.velocity[-1] - state["v"], body.angular_velocity[-1] - state["omega"]]
        return float(np.abs(wrong).max())

    if name.startswith("B1"):  # pure spin: the torque is constant, so that the step is exact
        assert error(0.01) < 1e-12
    else:
        assert least < measured_order([0.02, 0.01, 0.005], error) < most
    run = sphere(case, 0.01, 3.0, stepper)
    stop = case["t_stop_slip"]
    k = at(run, np.ceil(stop / 0.01 + 2) * 0.01)
    np.testing.assert_allclose(run["body"].velocity[k], case["v_final"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(run["body"].angular_velocity[k], case["omega_final"], rtol=0, atol=1e-9)
    assert abs(run["body"].angular_velocity[at(run, round(stop - 0.05, 2)), 2]) > 0.05
    assert_lawful(run, 1.0)


def box(case: dict[str, Any], h: float, duration: float, stepper: str) -> Trajectory:
    given = case["inputs"]
    scene = on_ground(
        shapes.box(*np.array(given["dims"]) / 2), mass=given["m"], position=given["x0"], velocity=given["v0"]
    )
    scene.friction(mu=given["mu"])
    return simulate(scene, duration=duration, step=h, stepper=stepper)


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("name", BOXES)
def test_box_slides_to_rest(name: str, stepper: str) -> None:
    """A box slides to rest flat, pressing ahead of its centre, in the right place.

    That is first order in h with Euler. With RATTLE only the step in which it stops is not exact:
    below mu g h^2 / 8, more or less of it by where in the step that is.
    """
    case = BOXES[name]
    duration = float(np.ceil(case["t_stop"] / 0.04 + 1) * 0.04)

    def error(h: float) -> float:
        run = box(case, h, duration, stepper)
        assert_at_rest(run, speed=1e-9)
        return float(np.linalg.norm(run["body"].position[-1, :2] - case["displacement"][:2]))

    if stepper == "implicit-euler":
        assert 0.9 < measured_order([0.04, 0.02, 0.01], error) < 1.1
    else:
        for h in (0.04, 0.033, 0.03, 0.02, 0.01):
            assert error(h) < case["inputs"]["mu"] * G * h**2 / 8
    run = box(case, 0.01, duration, stepper)
    assert_lawful(run, max(case["inputs"]["dims"]))
    sliding = run.contacts[: int(case["t_stop"] / 0.01) - 1]
    assert set(sliding["mode"]) == {"slide"}
    centre = run["body"].position[1 : 1 + len(sliding), :2]
    offset = sliding["point"][:, :2] - centre
    np.testing.assert_allclose(offset, np.tile(case["offset"], (len(offset), 1)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(run["body"].orientation[-1], (1, 0, 0, 0), atol=1e-9)


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("push", [3.0, 7.0])
def test_pushed_box_presses_off_centre(push: float, stepper: str) -> None:
    """Sticking under a force P at the height e of its centre, a box presses P e / (m g) ahead of it."""
    scene = on_ground(shapes.box(0.4, 0.3, 0.3), position=(0, 0, 0.3))
    scene.friction(mu=0.8)
    scene.applied("body", force=(push, 0, 0))
    run = simulate(scene, duration=0.5, step=0.01, stepper=stepper)
    np.testing.assert_allclose(run.contacts["point"][-1], (0.3 * push / G, 0, 0), rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        run.contacts["p_t"][-1] ** 2 + run.contacts["p_o"][-1] ** 2, (0.01 * push) ** 2
    )
    np.testing.assert_allclose(run["body"].position[-1], (0, 0, 0.3), rtol=0, atol=1e-9)
    assert set(run.contacts["mode"]) == {"stick"}


def sliding_tower(mu: float, h: float, stepper: str) -> Trajectory:
    half = np.array([TIP["lx"], TIP["lx"], TIP["lz"]]) / 2
    scene = on_ground(shapes.box(*half), position=(0, 0, half[2]), velocity=(2, 0, 0))
    scene.friction(mu=mu)
    return simulate(scene, duration=0.2, step=h, stepper=stepper)


@pytest.mark.parametrize("stepper", TWO)
def test_sliding_tower_tips_above_the_threshold(stepper: str) -> None:
    """A sliding box with lx/lz = 0.4 stays flat at mu = 0.39 and pitches at 0.41, as fast as it must."""
    flat = sliding_tower(TIP["test_flat_mu"], 0.01, stepper)
    np.testing.assert_allclose(flat["body"].angular_velocity, 0, atol=1e-9)
    mu, d, e = TIP["test_tip_mu"], TIP["lx"] / 2, TIP["lz"] / 2
    inertia = (TIP["lx"] ** 2 + TIP["lz"] ** 2) / 12
    pitch = G * (mu * e - d) / (inertia - d * (mu * e - d))

    def error(h: float) -> float:
        run = sliding_tower(mu, h, stepper)
        return float(abs(run["body"].angular_velocity[at(run, 0.02), 1] / 0.02 - pitch))

    assert error(0.001) < 0.05 * pitch
    assert sliding_tower(mu, 0.01, stepper)["body"].angular_velocity[-1, 1] > 0.15 * pitch


def cylinder(mu: float, h: float, stepper: str) -> Trajectory:
    given = CYLINDER["inputs"]
    scene = on_ground(
        shapes.cylinder(given["r"], 0.3),
        mass=given["m"],
        slope=np.radians(given["alpha_deg"]),
        position=(0, 0, given["r"]),
        orientation=(np.sqrt(0.5), np.sqrt(0.5), 0, 0),
    )
    scene.friction(mu=mu)
    return simulate(scene, duration=1.0, step=h, stepper=stepper)


@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize(
    ("mu", "states", "mode"),
    [(0.1, CYLINDER["roll"], "stick"), (0.03, CYLINDER["slide_mu0p03"], "slide")],
    ids=["roll", "slide"],
)
def test_cylinder_down_an_incline(mu: float, states: list[dict[str, float]], mode: str, stepper: str) -> None:
    """A cylinder on its side rolls or slides down: speeds exact; distance first order in Euler, or exact."""
    run = cylinder(mu, 0.01, stepper)
    for s in states[:2]:
        k = at(run, s["t"])
        np.testing.assert_allclose(run["body"].velocity[k], (s["v"], 0, 0), rtol=0, atol=1e-9)
        np.testing.assert_allclose(run["body"].angular_velocity[k], (0, s["omega"], 0), rtol=0, atol=1e-8)
    assert set(run.contacts["mode"][1:]) == {mode}
    assert_lawful(run, 0.15)

    def error(h: float) -> float:
        return float(abs(cylinder(mu, h, stepper)["body"].position[-1, 0] - states[1]["s"]))

    if stepper == "implicit-euler":
        assert 0.9 < measured_order([0.04, 0.02, 0.01], error) < 1.1
    else:
        assert max(error(h) for h in (0.04, 0.01)) < 1e-12


@pytest.mark.parametrize(
    ("shape", "position"),
    [(shapes.box(0.3, 0.2, 0.05), (0, 0, 0.05)), (shapes.cylinder(0.3, 0.1), (0, 0, 0.05))],
    ids=["box", "cylinder"],
)
@pytest.mark.parametrize("stepper", TWO)
@pytest.mark.parametrize("mu", [0.2, 0.7])
def test_stick_slip_threshold(shape: Any, position: Any, mu: float, stepper: str) -> None:
    """On an incline a body stays at tan(alpha) = 0.999 mu and slides by the closed form at 1.001 mu."""
    for factor in (0.999, 1.001):
        slope = np.arctan(factor * mu)
        scene = on_ground(shape, slope=slope, position=position)
        scene.friction(mu=mu)
        run = simulate(scene, duration=0.3, step=0.01, stepper=stepper)
        expected = max(0.0, G * (np.sin(slope) - mu * np.cos(slope))) * run.time
        np.testing.assert_allclose(run["body"].velocity[:, 0], expected, rtol=0, atol=1e-9)
        np.testing.assert_allclose(run["body"].velocity[:, 1:], 0, rtol=0, atol=1e-9)
        assert set(run.contacts["mode"]) == {"slide" if factor > 1 else "stick"}


@pytest.mark.parametrize("stepper", STEPPERS)
def test_rolling_disc_loses_nothing(stepper: str) -> None:
    """A planar disc rolling at 10 m/s keeps its energy to 1e-9 over 200 steps."""
    scene = Scene(dim=2, gravity=(0, -G))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("body", shapes.disc(0.5), mass=2.0, position=(0, 0.5), velocity=(10, 0), angular_velocity=-20)
    scene.friction(mu=0.3)
    run = simulate(scene, duration=2.0, step=0.01, stepper=stepper)
    assert np.ptp(run.kinetic_energy) < 1e-9 * run.kinetic_energy[0]
