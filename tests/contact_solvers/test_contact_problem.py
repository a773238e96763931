"""The contact problem of a scene or a run: sums of impulses, sticking and sliding, units, frames, patches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fixed_point import fixed_point

from implicit_geom import Scene, SceneError, contact_problem, shapes, simulate
from implicit_geom.solvers.contact.solution import ContactSolution

G, H = 9.81, 0.01
TURNED = (np.sqrt(0.5), np.sqrt(0.5), 0, 0)  # the z axis along -y


def solved(problem: Any) -> ContactSolution:
    found = fixed_point(problem, tolerance=1e-10)
    found.tolerance = 1e-9
    assert found.converged, found.residuals
    return found


def on_plane(shape: Any, *, normal: Any = (0, 0, 1), mu: float = 0.5, **body: Any) -> Scene:
    """A body of 2 kg over a half-space."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("ground", shapes.halfspace(normal=normal), fixed=True)
    scene.add("body", shape, mass=2.0, **body)
    scene.friction(mu=mu)
    return scene


def impulses(s: ContactSolution) -> np.ndarray:
    return s.impulse.reshape(-1, s.problem.dim)


def test_a_sphere_at_rest() -> None:
    """p_n = m g h, no friction, no velocity; all in the place where it touches."""
    problem = contact_problem(on_plane(shapes.sphere(0.1), position=(0.3, 0, 0.1)), step=H)
    s = solved(problem)
    np.testing.assert_allclose(s.impulse, [2 * G * H, 0, 0], atol=1e-12)
    np.testing.assert_allclose(s.velocity, 0, atol=1e-12)
    (place,) = problem.places
    assert (place["first"], place["second"]) == ("ground", "body")
    np.testing.assert_allclose(place["point"], (0.3, 0, 0), atol=1e-15)
    np.testing.assert_allclose(place["normal"], (0, 0, 1))
    np.testing.assert_allclose(np.cross(place["normal"], place["tangent"]), place["binormal"])


def test_order_of_the_bodies() -> None:
    """Added the other way round, the normal points down, out of the ball; the motion is the same."""
    scene = Scene(gravity=(0, 0, -G))
    scene.add("body", shapes.sphere(0.1), mass=2.0, position=(0, 0, 0.1), velocity=(1, 0.5, 0))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    scene.friction(mu=0.5, e_r=0.01)
    other = on_plane(shapes.sphere(0.1), position=(0, 0, 0.1), velocity=(1, 0.5, 0))
    other.friction(mu=0.5, e_r=0.01)
    one, two = (contact_problem(each, step=H) for each in (scene, other))
    np.testing.assert_allclose(one.places["normal"][0], (0, 0, -1))
    assert str(one.places["first"][0]) == "body"
    first, second = solved(one), solved(two)
    np.testing.assert_allclose(first.velocity, second.velocity, atol=1e-9)
    np.testing.assert_allclose(first.impulse, second.impulse * (1, -1, 1, 1), atol=1e-9)


def test_gap() -> None:
    """A gap may close in the step and no more: u_n = v_n + gap / h; out of reach there is no contact."""
    scene = on_plane(shapes.sphere(0.1), position=(0, 0, 0.101), velocity=(0, 0, -1))
    problem = contact_problem(scene, step=H)
    assert problem.w[0] == pytest.approx(0.1)
    s = solved(problem)
    assert s.velocity[2] == pytest.approx(-0.1)
    far = on_plane(shapes.sphere(0.1), position=(0, 0, 0.2))
    assert contact_problem(far, step=H).contacts == 0
    assert contact_problem(far, step=H, reach=0.11).contacts == 1
    sunk = on_plane(shapes.sphere(0.1), position=(0, 0, 0.09))
    assert contact_problem(sunk, step=H).w[0] == 0  # (an overlap is not undone)


def test_restitution() -> None:
    """A closed contact leaves at the restitution's share of the speed of approach, and not when it leaves."""
    for speed, after in ((-2.0, 1.0), (0.5, 0.5 - G * H), (0.05, 0.0)):
        scene = on_plane(shapes.sphere(0.1), position=(0, 0, 0.1), velocity=(0, 0, speed))
        scene.friction(mu=0.0, restitution=0.5)
        assert solved(contact_problem(scene, step=H)).velocity[2] == pytest.approx(after)


@pytest.mark.parametrize("slope", [0.3, 0.5])
def test_incline(slope: float) -> None:
    """mu = 0.4: a box sticks at a slope of 0.3 rad and slides with g (sin - mu cos) at 0.5."""
    mu = 0.4
    n = np.array([np.sin(slope), 0, np.cos(slope)])
    down = np.array([np.cos(slope), 0, -np.sin(slope)])
    q = (np.cos(slope / 2), 0, np.sin(slope / 2), 0)
    scene = on_plane(shapes.box(0.3, 0.2, 0.05), normal=n, mu=mu, position=0.05 * n, orientation=q)
    s = solved(contact_problem(scene, step=H))
    expected = max(G * H * (np.sin(slope) - mu * np.cos(slope)), 0.0)
    np.testing.assert_allclose(s.velocity[:3], expected * down, atol=1e-8)
    np.testing.assert_allclose(s.velocity[3:], 0, atol=1e-7)
    assert impulses(s)[:, 0].sum() == pytest.approx(2 * G * H * np.cos(slope))


def test_box_on_a_plane() -> None:
    """Four corners; their impulses carry the weight and no moment."""
    problem = contact_problem(on_plane(shapes.box(0.3, 0.2, 0.1), position=(1, 0, 0.1)), step=H)
    assert problem.contacts == 4
    corners = {tuple(p) for p in problem.places["point"].round(9).tolist()}
    assert corners == {(1 + x, y, 0.0) for x in (-0.3, 0.3) for y in (-0.2, 0.2)}
    s = solved(problem)
    p_n = impulses(s)[:, 0]
    assert p_n.sum() == pytest.approx(2 * G * H)
    np.testing.assert_allclose(p_n @ (problem.places["point"] - (1, 0, 0)), 0, atol=1e-9)


def test_pushed_box_leans_on_its_front() -> None:
    """A force above the ground moves the load forward: the moments balance, the box does not turn."""
    scene = on_plane(shapes.box(0.1, 0.1, 0.1), position=(0, 0, 0.1), mu=1.0)
    scene.applied("body", force=(5.0, 0, 0), torque=(0, 0, 0))
    problem = contact_problem(scene, step=H)
    s = solved(problem)
    np.testing.assert_allclose(s.velocity, 0, atol=1e-8)
    centre = impulses(s)[:, 0] @ problem.places["point"] / impulses(s)[:, 0].sum()
    assert centre[0] == pytest.approx(5.0 * 0.1 / (2 * G))


def test_two_spheres() -> None:
    """Momentum is kept, the speed of approach is gone, and with restitution 1 they exchange velocities."""
    for restitution, after in ((0.0, (0.5, 0.5)), (1.0, (0.0, 1.0))):
        scene = Scene(gravity=(0, 0, 0))
        scene.add("a", shapes.sphere(0.1), mass=1.0, position=(0, 0, 0), velocity=(1, 0, 0))
        scene.add("b", shapes.sphere(0.2), mass=1.0, position=(0.3, 0, 0))
        scene.friction(mu=0.3, restitution=restitution)
        problem = contact_problem(scene, step=H)
        s = solved(problem)
        np.testing.assert_allclose(s.velocity.reshape(2, 6)[:, 0], after, atol=1e-9)
        np.testing.assert_allclose(problem.places["point"], [[0.1, 0, 0]], atol=1e-12)


def test_spin_and_gyroscopic_moment() -> None:
    """Without contact J omega changes by -h omega x J omega; loads are those of the time."""
    scene = Scene(gravity=(0, 0, 0))
    spin = np.array([1.0, 2.0, 3.0])
    scene.add("b", shapes.box(0.1, 0.2, 0.3), mass=1.0, orientation=TURNED, angular_velocity=spin)
    scene.applied("b", force=lambda t: (t + 1, 0, 0), torque=(0, 0, 0))
    problem = contact_problem(scene, step=H)
    J = problem.M.toarray()[3:, 3:]
    R = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    np.testing.assert_allclose(J, R @ shapes.box(0.1, 0.2, 0.3).inertia(1.0) @ R.T, atol=1e-15)
    np.testing.assert_allclose(J @ (problem.v_free[3:] - spin), -H * np.cross(spin, J @ spin), atol=1e-15)
    assert problem.v_free[0] == pytest.approx(H)


@pytest.mark.parametrize("dim", [2, 3])
def test_rigid_motion(dim: int) -> None:
    """Two bodies that turn together as one do not move past each other: H^T v = 0 in every row."""
    scene = Scene(dim=dim, gravity=(0,) * dim)
    body = shapes.box(0.2, 0.3, 0.1) if dim == 3 else shapes.rectangle(0.2, 0.1)
    up = np.eye(dim)[-1]
    scene.add("low", body, mass=1.0, position=0.5 * np.ones(dim))
    scene.add("high", body, mass=1.0, position=0.5 * np.ones(dim) + 0.2 * up)
    scene.friction(mu=0.2, e_r=0.0 if dim == 2 else 0.1)
    problem = contact_problem(scene, step=H)
    assert problem.contacts == 2 ** (dim - 1)
    spin = np.array([1.0, -2.0, 0.5]) if dim == 3 else np.array([0.7])
    motion = []
    for name in ("low", "high"):
        x = np.array(scene.bodies[name].position)
        v = np.cross(spin, x) if dim == 3 else spin * np.array([-x[1], x[0]])
        motion += [*(v + 0.3), *spin]
    np.testing.assert_allclose(problem.H.T @ np.array(motion), 0, atol=1e-12)


def test_units() -> None:
    """In other units of length and mass the impulses are those times the units."""
    found = []
    for length, mass in ((1.0, 1.0), (1e-3, 1e3)):
        scene = Scene(gravity=(0, 0, -G * length))
        scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
        start = {"position": (0, 0, 0.1 * length), "velocity": (0.3 * length, 0.1 * length, 0)}
        scene.add("body", shapes.box(*(length * np.array([0.3, 0.2, 0.1]))), mass=2.0 * mass, **start)
        scene.friction(mu=0.4)
        s = fixed_point(contact_problem(scene, step=H), tolerance=1e-10 * length)
        found.append(impulses(s).sum(axis=0) / (length * mass))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7)


def test_moving_frame() -> None:
    """Seen from a frame that moves along, two bodies that strike each other get the same impulses."""
    found = []
    for v in (np.zeros(3), np.array([3.0, -1.0, 2.0])):
        scene = Scene(gravity=(0, 0, 0))
        scene.add("a", shapes.box(0.1, 0.1, 0.1), mass=1.0, velocity=v + (0.2, 0, 1.0))
        scene.add("b", shapes.box(0.1, 0.1, 0.1), mass=3.0, position=(0.05, 0.02, 0.2), velocity=v)
        scene.friction(mu=0.3)
        problem = contact_problem(scene, step=H, reach=1e-3)
        assert problem.contacts == 4
        found.append(impulses(solved(problem)).sum(axis=0))
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    assert found[0][0] > 0.1


def test_turned_frame() -> None:
    """Turned as a whole, a scene has the same normal impulses."""
    n = np.array([0, -1.0, 0])  # where TURNED takes the z axis
    box = shapes.box(0.3, 0.2, 0.1)
    upright = on_plane(box, position=(0, 0, 0.1), velocity=(0.4, 0, 0))
    turned = Scene(gravity=G * -n)
    turned.add("ground", shapes.halfspace(normal=n), fixed=True)
    start = {"position": 0.1 * n, "orientation": TURNED, "velocity": (0.4, 0, 0)}
    turned.add("body", box, mass=2.0, **start)
    turned.friction(mu=0.5)
    one, two = (solved(contact_problem(scene, step=H)) for scene in (upright, turned))
    np.testing.assert_allclose(np.sort(impulses(one)[:, 0]), np.sort(impulses(two)[:, 0]), atol=1e-8)
    np.testing.assert_allclose(one.velocity[0], two.velocity[0], atol=1e-8)


def test_plane() -> None:
    """In the plane: two rows a contact, three velocities a body; a rectangle stands on two corners."""
    scene = Scene(dim=2, gravity=(0, -G))
    scene.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    scene.add("low", shapes.rectangle(0.2, 0.1), mass=1.0, position=(0, 0.1), velocity=(0.2, 0))
    scene.add("top", shapes.rectangle(0.1, 0.1), mass=3.0, position=(0.15, 0.3))
    scene.friction(mu=0.2)
    problem = contact_problem(scene, step=H)
    assert (problem.dim, problem.n, problem.contacts) == (2, 6, 4)
    above = problem.places["first"] == "low"
    assert sorted(problem.places["point"][above].round(6).tolist()) == [[0.05, 0.2], [0.2, 0.2]]
    s = solved(problem)
    p = impulses(s)
    assert p[above, 0].sum() == pytest.approx(3 * G * H)
    assert p[~above, 0].sum() == pytest.approx(4 * G * H)
    assert s.velocity[0] == pytest.approx(0.2 - 0.2 * (4 + 3) * G * H)
    assert s.velocity[3] == pytest.approx(0.2 * G * H)


def test_torsion() -> None:
    """e_r > 0 adds a row: a ball that spins is slowed by e_r mu p_n about the normal."""
    scene = on_plane(shapes.sphere(0.1), position=(0, 0, 0.1), angular_velocity=(0, 0, 5.0))
    scene.friction(mu=0.5, e_r=0.01)
    problem = contact_problem(scene, step=H)
    assert problem.dim == 4
    np.testing.assert_allclose(problem.e, [[1, 1, 0.01]])
    s = solved(problem)
    J = 0.4 * 2 * 0.1**2
    assert s.velocity[5] == pytest.approx(5.0 - 0.01 * 0.5 * 2 * G * H / J)


def test_friction_ellipsoid_follows_its_body() -> None:
    """direction and frame turn t with the body they belong to."""
    angle = 0.7
    q = (np.cos(angle / 2), 0, 0, np.sin(angle / 2))
    scene = on_plane(shapes.sphere(0.1), position=(0, 0, 0.1), orientation=q)
    scene.friction("body", "ground", mu=0.5, e_t=0.5, direction=(1, 0, 0), frame="body")
    problem = contact_problem(scene, step=H)
    np.testing.assert_allclose(problem.places["tangent"][0], (np.cos(angle), np.sin(angle), 0), atol=1e-15)
    np.testing.assert_allclose(problem.e, [[0.5, 1.0]])


def test_of_a_run() -> None:
    """At a time of a run; the next velocities are those of the run's next step where it is at rest."""
    scene = on_plane(shapes.sphere(0.1), position=(0, 0, 0.1), velocity=(1, 0, 0), mu=0.3)
    run = simulate(scene, duration=0.05, step=H, stepper="implicit-euler", progress=False)
    problem = contact_problem(run, time=0.03)
    v = solved(problem).velocity
    np.testing.assert_allclose(v[:3], run["body"].velocity[4], atol=1e-9)
    np.testing.assert_allclose(v[3:], run["body"].angular_velocity[4], atol=1e-8)
    assert contact_problem(run).v_free[0] == pytest.approx(run["body"].velocity[-1, 0])
    with pytest.raises(SceneError, match=r"time = 0\.033 .* nearest is 0\.03 s"):
        contact_problem(run, time=0.033)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({}, "step is missing"),
        ({"step": -1.0}, "step = -1.0 must be positive"),
        ({"step": 0.01, "time": 0.0}, "time belongs to a run"),
        ({"step": 0.01, "reach": np.nan}, "reach"),
        ({"stepp": 0.01}, "did you mean 'step'"),
    ],
)
def test_bad_calls(call: dict[str, Any], words: str) -> None:
    with pytest.raises(SceneError, match=words):
        contact_problem(on_plane(shapes.sphere(0.1), position=(0, 0, 0.1)), **call)
    with pytest.raises(SceneError, match="must be a Scene or a run"):
        contact_problem("scene.toml", step=H)
