"""Bodies in a bin: every step is taken, certified and free of overlap; what rests stays where it is."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, Trajectory, shapes, simulate

SHAPES = {
    "spheres": shapes.sphere(0.05),
    "ellipsoids": shapes.ellipsoid(0.06, 0.045, 0.035),
    "boxes": shapes.box(0.04, 0.035, 0.03),
    "capsules": shapes.capsule(0.025, 0.03),
}
PLACE = 0.13  # m, of a body in a layer


def bin_of(kind: str, side: int, layers: int, e: float, seed: int) -> Scene:
    """Layers of bodies over a floor between four walls, turned and moving at random."""
    rng = np.random.default_rng(seed)
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    for k, normal in enumerate(((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0))):
        wall = shapes.halfspace(normal, offset=-(PLACE * side / 2 + 0.025))
        scene.add(f"wall {k}", wall, fixed=True)
    for k in range(layers * side**2):
        layer, rest = divmod(k, side**2)
        across = (np.array(divmod(rest, side)) - (side - 1) / 2) * PLACE + rng.uniform(-0.005, 0.005, 2)
        q = rng.normal(size=4)
        scene.add(
            f"body {k}",
            SHAPES[kind],
            mass=0.2,
            position=(*across, 0.1 + 0.14 * layer),
            orientation=q / np.linalg.norm(q),
            velocity=0.3 * rng.normal(size=3),
            angular_velocity=rng.normal(size=3),
        )
    scene.friction(mu=0.5, restitution=e)
    return scene


def ran(scene: Scene, duration: float) -> Trajectory:
    return simulate(scene, duration=duration, step=0.01, progress=False)


@pytest.mark.parametrize("e", [0.0, 0.5])
@pytest.mark.parametrize("kind", SHAPES)
def test_eight_in_a_bin(kind: str, e: float) -> None:
    """The laws hold in every step, restitution with them; few have parts in the end-of-step form."""
    run = ran(bin_of(kind, 2, 2, e, seed=5), 0.8)
    assert run.certify().ok
    assert run.max_penetration < 1e-10
    assert np.sum(run.steps["form"] == "euler") <= 8
    assert np.any(run.steps["reason"] == "many impacts in a step")


def test_restitution_acts_in_crowds() -> None:
    """Impacts at which a step is not cut bounce, too: with e = 0.9 more energy is left than with e = 0."""
    left = [ran(bin_of("spheres", 2, 2, e, seed=6), 0.3).kinetic_energy[-1] for e in (0.0, 0.9)]
    assert left[1] > 3 * left[0]


def test_a_heap_stays() -> None:
    """Spheres that have come to rest do not creep, and each step starts from the last one's impulses."""
    run = ran(bin_of("spheres", 3, 3, 0.0, seed=0), 2.0)
    later = run.resume(duration=1.0)
    names = [name for name in run.names if name.startswith("body")]
    gone = max(np.linalg.norm(later[n].position[-1] - later[n].position[200]) for n in names)
    slow = max(np.linalg.norm(run[n].velocity[-1]) for n in names)
    assert gone < 1e-9 + 2 * slow
    assert np.median(later.steps["iterations"][-50:]) <= 6


def test_a_far_body_changes_nothing() -> None:
    """Bit for bit: an island knows nothing of bodies that it cannot touch."""
    near, more = bin_of("boxes", 2, 2, 0.0, seed=5), bin_of("boxes", 2, 2, 0.0, seed=5)
    more.add("far", shapes.sphere(0.1), mass=1e3, position=(0, 0, 1e4), velocity=(0, 0, 50))
    ours, theirs = ran(near, 0.3), ran(more, 0.3)
    for name in ours.names:
        assert ours[name].position.tobytes() == theirs[name].position.tobytes()


@pytest.mark.parametrize(
    ("pressed", "words"),
    [
        ([[0, 0, 1.0]], "8 numbers"),
        ([["x"] * 8], "finite numbers"),
        ([[999, 0, 1.0, 0, 0, 0, 0, 1.0]], "pair 999"),
        (5, "no list"),
    ],
)
def test_damaged_memory_of_a_crowd_is_refused(pressed: object, words: str) -> None:
    run = ran(bin_of("spheres", 2, 1, 0.0, seed=5), 0.02)
    run.memory = {**run.memory, "pressed": pressed}
    with pytest.raises(SceneError, match=words):
        run.resume(duration=0.01)


def test_memory_of_an_earlier_version_is_left_out() -> None:
    """Its rows are shorter: the run goes on, from no impulses."""
    run = ran(bin_of("spheres", 2, 1, 0.0, seed=5), 0.2)
    whole = ran(bin_of("spheres", 2, 1, 0.0, seed=5), 0.3)
    shorter = [row[:7] for row in run.memory["pressed"]]
    run.memory = {**run.memory, "pressed": shorter}
    later = run.resume(duration=0.1)
    assert shorter
    for name in run.names:
        np.testing.assert_allclose(later[name].position, whole[name].position, rtol=0, atol=1e-9)


def test_a_stack_at_rest_starts_from_its_solution() -> None:
    """Also where tangents turn by rounding: nothing is left to be solved."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    for k in range(6):
        scene.add(f"body {k}", shapes.box(0.1, 0.1, 0.05), mass=1.0 + k, position=(0, 0, 0.05 + 0.1 * k))
    scene.friction(mu=0.5)
    run = ran(scene, 0.5)
    assert np.max(run.steps["factorisations"][5:]) <= 6
    assert np.max(np.ptp(run["body 5"].position[5:], axis=0)) < 1e-12


def test_a_box_that_slides_and_spins_is_no_work() -> None:
    """Friction's place moves with the impulses, and its velocity with that: many times what masses give."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "box",
        shapes.box(0.1, 0.12, 0.15),
        mass=1.0,
        position=(0, 0, 0.1),
        orientation=(np.sqrt(0.5), 0, np.sqrt(0.5), 0),
        velocity=(0.1, 0.05, 0),
        angular_velocity=(0, 0, -9.0),
    )
    scene.friction(mu=0.3)
    run = ran(scene, 1.0)
    assert run.certify().ok
    assert np.max(run.steps["factorisations"]) <= 60
    assert np.max(run.steps["friction"]) < 1e-10


@pytest.mark.parametrize("kind", SHAPES)
def test_crowds_under_implicit_euler(kind: str) -> None:
    """Everything at the end of the step: no step left to Python, no gain, momentum and laws certified."""
    scene = bin_of(kind, 2, 2, 0.0, seed=5)
    run = simulate(scene, duration=0.8, step=0.01, stepper="implicit-euler", progress=False)
    assert set(run.steps["reason"]) <= {"", "rounds did not settle"}
    assert set(run.steps["form"]) == {"euler"}
    assert set(run.steps["guard"]) == {"none"}
    for name in ("dynamics", "complementarity", "friction"):
        assert np.max(run.steps[name]) < 1e-9
    assert run.max_penetration < 1e-10
    parts = simulate(scene, duration=0.4, step=0.01, stepper="implicit-euler", progress=False)
    again = parts.resume(duration=0.4)
    for name in run.names:
        assert again[name].position.tobytes() == run[name].position.tobytes()
