"""Motion, energy and the contact table of a run, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, Trajectory, shapes, simulate
from implicit_geom.scene.options import IMPLICIT

G = 9.81


def thrown(dim: int, stepper: str = "implicit-rattle") -> Trajectory:
    """A free body with velocity and spin."""
    scene = Scene(dim=dim)
    if dim == 3:
        spin, shape = (0, 0, 4.0), shapes.ellipsoid(0.5, 0.5, 0.2)
        scene.add("body", shape, mass=2.0, position=(1, 2, 3), velocity=(1, 0, 2), angular_velocity=spin)
    else:
        scene.add(
            "body", shapes.ellipse(0.5, 0.2), mass=2.0, position=(1, 3), velocity=(1, 2), angular_velocity=4.0
        )
    return simulate(scene, duration=0.5, step=0.01, stepper=stepper)


def height(stepper: str) -> np.ndarray:
    """z_k = z_0 + k h v_0 - g h^2 k (k + 1) / 2 by implicit Euler, and the exact g (k h)^2 / 2 by RATTLE."""
    k = np.arange(51)
    fallen = k * (k + 1) if stepper == "implicit-euler" else k**2
    return 3 + 0.02 * k - G * 1e-4 * fallen / 2


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("dim", [2, 3])
def test_free_flight_matches_the_recurrence(dim: int, stepper: str) -> None:
    """In free flight v_k = v_0 - g k h; heights by each stepper's own formula, exact for RATTLE."""
    run = thrown(dim, stepper)
    k = np.arange(51)
    np.testing.assert_allclose(run["body"].velocity[:, -1], 2 - G * 0.01 * k, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run["body"].position[:, -1], height(stepper), rtol=0, atol=1e-12)


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("dim", [2, 3])
def test_energies_of_a_free_flight(dim: int, stepper: str) -> None:
    """Kinetic energy m v^2 / 2 + J w^2 / 2 and potential m g z from closed forms; RATTLE keeps the sum."""
    run = thrown(dim, stepper)
    k = np.arange(51)
    J = 2.0 * (0.5**2 + 0.5**2) / 5 if dim == 3 else 2.0 * (0.5**2 + 0.2**2) / 4
    speed2 = 1 + (2 - G * 0.01 * k) ** 2
    np.testing.assert_allclose(run.kinetic_energy, speed2 + J * 16 / 2, rtol=1e-12)
    np.testing.assert_allclose(run.potential_energy, 2 * G * height(stepper), rtol=1e-12)
    np.testing.assert_allclose(run.energy, run.kinetic_energy + run.potential_energy, rtol=0)
    if stepper != "implicit-euler":
        np.testing.assert_allclose(run.energy, run.energy[0], rtol=1e-12)


def test_rotational_energy_uses_body_axes() -> None:
    """A body turned by 90 degrees about y spins about the world's z with its own x inertia."""
    scene = Scene(gravity=(0, 0, 0))
    half = np.sqrt(0.5)
    body = shapes.ellipsoid(0.5, 0.4, 0.3)
    scene.add("body", body, mass=1.0, orientation=(half, 0, half, 0), angular_velocity=(0, 0, 2))
    run = simulate(scene, duration=0.01, step=0.01)
    assert run.kinetic_energy[0] == pytest.approx((0.4**2 + 0.3**2) / 5 * 4 / 2, rel=1e-12)


def test_shapes_of_the_arrays() -> None:
    """(T+1, dim) positions; quaternions in space, plain angles in the plane."""
    space, plane = thrown(3)["body"], thrown(2)["body"]
    assert space.position.shape == space.velocity.shape == space.angular_velocity.shape == (51, 3)
    assert space.orientation.shape == (51, 4)
    assert plane.position.shape == plane.velocity.shape == (51, 2)
    assert plane.orientation.shape == plane.angular_velocity.shape == (51,)
    np.testing.assert_allclose(plane.orientation, 0.04 * np.arange(51), rtol=1e-12, atol=1e-15)


def test_unknown_body_is_named() -> None:
    """run["bdy"] suggests the body meant."""
    with pytest.raises(SceneError, match="did you mean 'body'"):
        thrown(2)["bdy"]


def sliding(order: tuple[str, str], dim: int, stepper: str) -> Trajectory:
    """A ball that slides to the right on the ground, the two added in the given order."""
    scene = Scene(dim=dim)
    for name in order:
        if name == "ground":
            up = (0, 0, 1) if dim == 3 else (0, 1)
            shape = shapes.halfspace(normal=up) if dim == 3 else shapes.halfplane(normal=up)
            scene.add("ground", shape, fixed=True)
        else:
            ball = shapes.sphere(0.5) if dim == 3 else shapes.disc(0.5)
            place, speed = ((0, 0, 0.5), (2, 0, 0)) if dim == 3 else ((0, 0.5), (2, 0))
            scene.add("ball", ball, mass=3.0, position=place, velocity=speed)
    scene.friction(mu=0.25)
    return simulate(scene, duration=0.1, step=0.01, stepper=stepper)


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("order", [("ground", "ball"), ("ball", "ground")])
def test_impulses_act_on_second(order: tuple[str, str], dim: int, stepper: str) -> None:
    """p_n n + p_t t + p_o o is the change of momentum of `second`, whichever body was added first."""
    run = sliding(order, dim, stepper)
    rows = run.contacts
    assert len(rows) == 10
    assert set(rows["first"]) == {order[0]}
    assert set(rows["second"]) == {order[1]}
    sign = 1 if order[1] == "ball" else -1
    up = np.eye(dim)[-1]
    np.testing.assert_allclose(rows["normal"], np.tile(sign * up, (10, 1)), atol=1e-12)
    on_second = rows["p_n"][:, None] * rows["normal"] + rows["p_t"][:, None] * rows["tangent"]
    on_second += rows["p_o"][:, None] * rows["binormal"]
    gained = 3.0 * np.diff(run["ball"].velocity, axis=0) + 3.0 * G * 0.01 * up
    np.testing.assert_allclose(on_second, sign * gained, atol=1e-9)
    np.testing.assert_allclose(on_second[:, 0], -sign * 0.25 * 3.0 * G * 0.01, rtol=1e-8)
    np.testing.assert_allclose(rows["p_n"], 3.0 * G * 0.01, rtol=1e-8)
    assert np.all(rows["mode"] == "slide")


@pytest.mark.parametrize("stepper", IMPLICIT)
@pytest.mark.parametrize("dim", [2, 3])
def test_order_of_bodies_leaves_the_motion_alone(dim: int, stepper: str) -> None:
    """Ground before or after the ball: the same motion, points and slip."""
    a, b = sliding(("ground", "ball"), dim, stepper), sliding(("ball", "ground"), dim, stepper)
    np.testing.assert_allclose(a["ball"].position, b["ball"].position, atol=1e-13)
    for name in ("point", "slip_speed", "p_n"):
        np.testing.assert_allclose(a.contacts[name], b.contacts[name], atol=1e-12)


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_slip_without_friction(stepper: str) -> None:
    """Without friction the slip speed is still reported: all of it, and the contact slides."""
    scene = Scene()
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.add("ball", shapes.sphere(0.5), mass=1.0, position=(0, 0, 0.5), velocity=(3, 4, 0))
    run = simulate(scene, duration=0.05, step=0.01, stepper=stepper)
    assert len(run.contacts) == 5
    np.testing.assert_allclose(run.contacts["slip_speed"], 5.0, rtol=1e-10)
    assert np.all(run.contacts["mode"] == "slide")


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_rolling_sticks(stepper: str) -> None:
    """A disc that rolls without slip is reported as sticking, with a slip speed of rounding size."""
    scene = Scene(dim=2)
    scene.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    scene.add("disc", shapes.disc(1), mass=1.0, position=(0, 1), velocity=(-3, 0), angular_velocity=3.0)
    scene.friction(mu=0.4)
    run = simulate(scene, duration=0.5, step=0.01, stepper=stepper)
    assert len(run.contacts) == 50
    assert np.all(run.contacts["mode"] == "stick")
    assert np.max(run.contacts["slip_speed"]) < 1e-9


@pytest.mark.parametrize(
    ("stepper", "impacts"), [*((s, "stages") for s in IMPLICIT), *((s, "events") for s in IMPLICIT[:2])]
)
def test_parts_of_a_step_are_summed(stepper: str, impacts: str, bullet: Scene) -> None:
    """In a step taken in parts, a pair has one row whose impulse is the momentum change of the step."""
    run = simulate(bullet, duration=0.06, step=0.01, stepper=stepper, impacts=impacts)
    assert np.max(run.steps["solves"]) > 1
    assert ("substepped" in run.steps["status"]) == (impacts == "stages")
    assert np.any(run.steps["impacts"] > 0) == (impacts == "events")
    assert np.all(np.diff(run.contacts["time"]) > 0)
    change = np.diff(run["ball"].velocity, axis=0)
    for row in run.contacts:
        k = int(np.flatnonzero(run.steps["time"] == row["time"])[0])
        impulse = row["p_n"] * row["normal"] + row["p_t"] * row["tangent"] + row["p_o"] * row["binormal"]
        np.testing.assert_allclose(impulse, 0.1 * change[k], atol=1e-9)
    assert run.steps["solves"].sum() == len(run.solves)


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_steps_and_penetration(stepper: str, eggs: Scene) -> None:
    """One row a step with small residuals; penetration is a number >= 0."""
    run = simulate(eggs, duration=0.3, step=0.01, stepper=stepper)
    assert len(run.steps) == 30
    assert set(run.steps["status"]) <= {"converged", "continued", "substepped"}
    assert np.all(run.steps["residual"] < 1e-8)
    assert 0 <= run.max_penetration < 1e-9
    assert run.steps["contacts"].sum() == len(run.contacts)
    assert np.all(run.steps["wall_time"] > 0)


def test_tables_are_plain_columns(eggs: Scene) -> None:
    """`table` gives equal, one-dimensional columns; vectors are split by axis."""
    run = simulate(eggs, duration=0.1, step=0.01)
    table = run.table("contacts")
    assert {"point_x", "normal_z", "p_n", "mode"} <= set(table)
    assert all(column.shape == (len(run.contacts),) for column in table.values())
    np.testing.assert_array_equal(table["point_z"], run.contacts["point"][:, 2])
    assert len(run.table("steps")["iterations"]) == 10
    ledger = run.table("ledger")
    assert {"time", "kinetic", "potential", "work", "friction", "impact", "remainder"} <= set(ledger)
    np.testing.assert_array_equal(ledger["kinetic"], run.kinetic_energy[1:])
    with pytest.raises(SceneError, match="'contacts', 'impacts', 'steps' or 'ledger'"):
        run.table("energy")


@pytest.mark.parametrize("stepper", IMPLICIT)
def test_solves_can_be_recomputed(stepper: str, bullet: Scene) -> None:
    """Each solve's end follows from its start: x+ = x + h v_half, and v_half = v+ in implicit Euler."""
    run = simulate(bullet, duration=0.06, step=0.01, stepper=stepper)
    assert len(run.solves) > 6
    before = np.concatenate([run.initial.x[None], run.solves.x[:-1]])
    h = run.solves.table["h"][:, None, None]
    np.testing.assert_allclose(run.solves.x, before + h * run.solves.half[:, :, :3], rtol=0, atol=1e-15)
    if stepper == "implicit-euler":
        np.testing.assert_array_equal(run.solves.half[:, :, :3], run.solves.v)
        np.testing.assert_array_equal(run.solves.half[:, :, 3:], run.solves.w)
