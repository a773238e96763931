"""Bins, piles, stacks, an arch, a wedge and a chain of ours, whose contact problems are recorded.

`python -m implicit_geom.experiments.contact_scenes` writes `references/scene_problems.npz` anew. Scenes that
steppers run are taken on their way, those in which bodies rest on each other from the first instant as they
begin: steppers may fail there, and the first step is as hard as any.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from implicit_geom import Scene, Stepper, contact_problem, shapes, simulate
from implicit_geom.experiments.contact_problem_sets import SCENES
from implicit_geom.experiments.piles import STEP as PILE_STEP
from implicit_geom.experiments.piles import pile
from implicit_geom.solvers.contact.problem import ContactProblem

STEP = 0.01  # s
FRICTIONS = (0.2, 0.6, 1.0)
HEAVY = 1e4  # mass ratio


def bin_scene(width: float, mu: float) -> Scene:
    """A floor and four walls."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("floor", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    for k, (x, y) in enumerate([(1, 0), (-1, 0), (0, 1), (0, -1)]):
        place = (-x * width / 2, -y * width / 2, 0)
        scene.add(f"wall {k}", shapes.halfspace(normal=(x, y, 0)), fixed=True, position=place)
    scene.friction(mu=mu)
    return scene


def spheres(mu: float) -> Scene:
    """Twelve spheres of two sizes that fall into a bin."""
    rng = np.random.default_rng(1)
    scene = bin_scene(0.5, mu)
    for k in range(12):
        layer, place = divmod(k, 4)
        x, y = 0.11 * np.array([(-1, -1), (-1, 1), (1, -1), (1, 1)][place]) + rng.uniform(-0.01, 0.01, 2)
        radius = (0.1, 0.08)[k % 2]
        scene.add(f"sphere {k}", shapes.sphere(radius), mass=1.0, position=(x, y, 0.11 + 0.22 * layer))
    return scene


def ellipsoids(mu: float) -> Scene:
    """Five ellipsoids that fall into a bin, each turned another way."""
    rng = np.random.default_rng(2)
    scene = bin_scene(0.4, mu)
    for k in range(5):
        turn = rng.normal(size=4)
        place = (*rng.uniform(-0.04, 0.04, 2), 0.2 + 0.32 * k)
        shape = shapes.ellipsoid(0.15, 0.11, 0.08)
        scene.add(f"ellipsoid {k}", shape, mass=1.0, position=place, orientation=turn / np.linalg.norm(turn))
    return scene


def stack(mu: float, heavy: float = 1.0) -> Scene:
    """Ten boxes on each other, every second of another mass, the floor tilted by a little."""
    scene = Scene(gravity=(0.3, 0.1, -9.81))
    scene.add("floor", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    for k in range(10):
        place = (0.01 * (k % 3), 0.015 * (k % 2), 0.1 + 0.2 * k)
        scene.add(f"box {k}", shapes.box(0.1, 0.1, 0.1), mass=(1.0, heavy)[k % 2], position=place)
    scene.friction(mu=mu)
    return scene


def bricks(mu: float) -> Scene:
    """A wall of bricks, four layers in bond, that is pushed."""
    scene = Scene(gravity=(0.0, 1.5, -9.81))
    scene.add("floor", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    for layer in range(4):
        for k in range(4 - layer % 2):
            place = (0.4 * k + 0.2 * (layer % 2), 0.0, 0.05 + 0.1 * layer)
            scene.add(f"brick {layer}-{k}", shapes.box(0.2, 0.1, 0.05), mass=2.0, position=place)
    scene.friction(mu=mu)
    return scene


def arch(mu: float, stones: int = 11, inner: float = 1.0, outer: float = 1.3) -> Scene:
    """Half a ring of wedge-shaped stones in the plane."""
    scene = Scene(dim=2, gravity=(0, -9.81))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    half = np.pi / (2 * stones)
    ring = [(inner, -half), (inner, half), (outer, half), (outer, -half)]
    shape, centre = centred([(r * np.sin(a), r * np.cos(a)) for r, a in ring])
    for k in range(stones):
        at = np.pi / 2 - (2 * k + 1) * half  # from the vertical
        place = centre[1] * np.array([np.sin(at), np.cos(at)])
        scene.add(f"stone {k}", shape, mass=1.0, position=place, orientation=-at)
    scene.friction(mu=mu)
    return scene


def wedge(mu: float, heavy: float = 1.0) -> Scene:
    """A wedge between two slopes, with a disc on it."""
    scene = Scene(dim=2, gravity=(0.5, -9.81))
    steep = np.radians(20)
    for name, sign in (("left", 1.0), ("right", -1.0)):
        scene.add(name, shapes.halfplane((sign * np.cos(steep), np.sin(steep))), fixed=True)
    low, top = 0.1, 0.4
    sides = [(-top, top), (top, top), (low, low), (-low, low)]
    shape, centre = centred([(x * np.tan(steep), y) for x, y in sides])
    scene.add("wedge", shape, mass=1.0, position=centre)
    scene.add("disc", shapes.disc(0.1), mass=heavy, position=(0.02, top + 0.1))
    scene.friction(mu=mu)
    return scene


def centred(corners: list[tuple[float, float]]) -> tuple[shapes.Shape, np.ndarray]:
    """A polygon about its centre of mass, and where that was."""
    centre = shapes.polygon(corners).com
    return shapes.polygon((np.array(corners) - centre).tolist()), centre


def chain(mu: float) -> Scene:
    """Spheres on each other in a shaft, light ones under heavy ones."""
    width, radius = 0.3, 0.1
    scene = bin_scene(width, mu)
    aside = width / 2 - radius
    up = np.sqrt(4 * radius**2 - 2 * (2 * aside) ** 2)
    for k in range(8):
        sign = (-1) ** k
        place = (sign * aside, sign * aside, radius + up * k)
        scene.add(f"sphere {k}", shapes.sphere(radius), mass=(1.0, HEAVY)[k % 2], position=place)
    return scene


def problems() -> Iterator[tuple[str, ContactProblem]]:
    """All of them, by name; made anew."""
    for mu in FRICTIONS:
        for name, make in (("spheres", spheres), ("ellipsoids", ellipsoids)):
            run = simulate(make(mu), duration=0.8, step=STEP, stepper="implicit-euler", on_failure="record")
            for k in (20, 40, 60, 80):
                if k < len(run.time):
                    yield f"{name} mu {mu:g} at {run.time[k]:.2f} s", contact_problem(run, time=run.time[k])
        relaxed = Stepper.named("anitescu-hart", relaxation="LCP2")
        run = simulate(pile(6, mu), duration=1.0, step=PILE_STEP, stepper=relaxed, on_failure="record")
        for k in (5, 20):
            if k < len(run.time):
                yield f"discs mu {mu:g} at {run.time[k]:.2f} s", contact_problem(run, time=run.time[k])
        yield f"discs of 12 rows mu {mu:g}", contact_problem(pile(12, mu), step=PILE_STEP)
        for heavy in (1.0, HEAVY):
            yield f"stack mu {mu:g} ratio {heavy:g}", contact_problem(stack(mu, heavy), step=STEP)
            yield f"wedge mu {mu:g} ratio {heavy:g}", contact_problem(wedge(mu, heavy), step=STEP)
        for name, make in (("bricks", bricks), ("arch", arch), ("chain", chain)):
            yield f"{name} mu {mu:g}", contact_problem(make(mu), step=STEP)


def parts(problem: ContactProblem) -> dict[str, np.ndarray]:
    """A problem whose contacts have two bodies at most, as `contact_problem_sets` assembles it."""
    blocks, d = problem.blocks, problem.dim
    J = np.swapaxes(blocks.H.reshape(problem.contacts, -1, blocks.size, d), 2, 3)
    ends = np.where(blocks.ends < blocks.count, blocks.ends, -1)
    if ends.shape[1] == 1:
        ends, J = np.insert(ends, 1, -1, axis=1), np.concatenate([J, np.zeros_like(J)], axis=1)
    bodies = {"b1": ends[:, 0], "b2": ends[:, 1], "J1": J[:, 0], "J2": J[:, 1]}
    return {"Mb": blocks.mass, "vf": problem.v_free, **bodies, "w": problem.w, "mu": problem.mu}


if __name__ == "__main__":
    found = {f"{name}/{part}": array for name, p in problems() for part, array in parts(p).items()}
    np.savez_compressed(SCENES, **found)
    print(f"{SCENES}: {len(found) // 8} problems, {SCENES.stat().st_size} bytes")
