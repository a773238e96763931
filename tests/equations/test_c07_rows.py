"""Steps of `implicit-euler` satisfy C07's own rows: contact (6), (9), (19), (22) and friction (5), (11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from c07_rows import Body, Surface, friction_rows, lens, plane, quadric, row_6, row_9, row_19, row_22, slabs
from law_scenes import turned

from implicit_geom import Scene, shapes
from implicit_geom.contact.step_ncp import StepNCP
from implicit_geom.model.model import Model
from implicit_geom.steppers.candidates import StepSolution, solve_step
from implicit_geom.steppers.euler import EulerStepper

GROUND = plane((0, 0, 1), 0.0)
LENS = shapes.intersection(
    shapes.sphere(1.0).moved(position=(0, 0, -0.8)), shapes.sphere(1.0).moved(position=(0, 0, 0.8))
)
Case = tuple[Scene, float, int, dict[str, list[Surface]]]  # scene, step, steps, surfaces by body


def disc() -> Case:
    """C07's example 1, dropped from a little above the ground."""
    scene = Scene(dim=2, gravity=(0, -9.81))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("disc", shapes.disc(1.0), mass=1.0, position=(0, 1.01), velocity=(-3, 0), angular_velocity=1.0)
    scene.friction(mu=0.4)
    return scene, 0.01, 12, {"ground": plane((0, 1), 0.0), "disc": quadric(1, 1)}


def spinning_sphere() -> Case:
    """C07's example 2: torsional friction."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("sphere", shapes.sphere(1.0), mass=1.0, position=(0, 0, 1), angular_velocity=(0, 0, 1.962))
    scene.friction(mu=0.2, e_r=0.4)
    return scene, 0.07, 17, {"ground": GROUND, "sphere": quadric(1, 1, 1)}


def sphere_on_two_spheres() -> Case:
    """C07's example 3, its up to its separation from contact 1."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("large", shapes.sphere(10.0), fixed=True)
    scene.add("other", shapes.sphere(9.0), fixed=True, position=(0, 11.4, 0))
    start = (0, 6.62105263157895, 8.78417110772903)
    scene.add("small", shapes.sphere(1.0), mass=1.0, position=start)
    scene.applied("small", force=(1.0, 2.6, -9.81))
    scene.friction(mu=0.2, e_r=0.3)
    return (
        scene,
        0.03,
        112,
        {"large": quadric(10, 10, 10), "other": quadric(9, 9, 9), "small": quadric(1, 1, 1)},
    )


def ellipsoids() -> Case:
    """A tumbling ellipsoid on a moving one, with friction that differs by direction."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("low", shapes.ellipsoid(0.5, 0.4, 0.3), mass=2.0, position=(0, 0, 0.3), velocity=(0.3, 0, 0))
    scene.add(
        "high", shapes.ellipsoid(0.2, 0.3, 0.15), mass=0.5, position=(0.05, 0.02, 0.78),
        orientation=turned((1, 2, 0), 15), angular_velocity=(1, -2, 6),
    )  # fmt: skip
    scene.friction(mu=0.3, e_t=1.0, e_o=0.6, e_r=0.05, direction=(1, 2, 0.3))
    surfaces = {"ground": GROUND, "low": quadric(0.5, 0.4, 0.3), "high": quadric(0.2, 0.3, 0.15)}
    return scene, 0.01, 15, surfaces


def boxes() -> Case:
    """A box that falls on a corner, slides and tips over the edge of a fixed one."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("table", shapes.box(0.5, 0.5, 0.1), fixed=True, position=(0, 0, -0.1))
    scene.add(
        "box", shapes.box(0.2, 0.15, 0.1), mass=1.0, position=(0.4, 0, 0.25),
        orientation=turned((1, 2, 3), 40), velocity=(1, 0, 0), angular_velocity=(1, 0, 2),
    )  # fmt: skip
    scene.friction(mu=0.3)
    return scene, 0.01, 25, {"table": slabs(0.5, 0.5, 0.1), "box": slabs(0.2, 0.15, 0.1)}


def cylinder() -> Case:
    """A cylinder that lands on its rim, with torsional friction."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "cylinder", shapes.cylinder(0.2, 0.5), mass=1.0, position=(0, 0, 0.34),
        orientation=turned((1, 0.3, 0), 40), velocity=(0.5, 0, 0), angular_velocity=(0, 0, 4),
    )  # fmt: skip
    scene.friction(mu=0.4, e_r=0.02)
    surfaces = quadric(0.2, 0.2, np.inf) + slabs(np.inf, np.inf, 0.25)[4:]
    return scene, 0.01, 20, {"ground": GROUND, "cylinder": surfaces}


def lenses() -> Case:
    """Intersections of two balls: one rolls on its sharp rim against another that lies on its side."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("low", LENS, mass=1.0, position=(0, 0, 0.2), angular_velocity=(0, 0, 1))
    scene.add(
        "high", LENS, mass=1.0, position=(0.1, 0, 1.02), orientation=turned((1, 0.1, 0), 85),
        velocity=(0.5, 0, 0),
    )  # fmt: skip
    scene.friction(mu=0.3)
    return scene, 0.01, 15, {"ground": GROUND, "low": lens(1.0, 0.8), "high": lens(1.0, 0.8)}


SINGLE = [disc, spinning_sphere, sphere_on_two_spheres, ellipsoids]
INTERSECTIONS = [boxes, cylinder, lenses]


@dataclass
class Contact:
    """A candidate pair at the end of a step, closed or not: C07's unknowns but for the multipliers."""

    one: Body
    two: Body
    a1: np.ndarray
    a2: np.ndarray
    n: np.ndarray
    p_n: float
    p: np.ndarray  # t, o, r
    slip: np.ndarray  # (W_t, W_o, W_r)^T nu
    mu: float
    e: np.ndarray

    def closest_points(self) -> np.ndarray:
        """What is left of (22), and of (9) where it applies."""
        rows = row_22(self.one, self.two, self.a1, self.a2, self.n)
        if len(self.one.surfaces) + len(self.two.surfaces) > 2:
            return rows
        return np.append(rows, row_9(self.one, self.two, self.a1, self.a2))

    def signorini(self) -> np.ndarray:
        """What is left of (19), and of (6) where it applies."""
        rows = row_19(self.one, self.two, self.a1, self.a2, self.p_n)
        if len(self.one.surfaces) + len(self.two.surfaces) > 2:
            return rows
        return np.append(rows, row_6(self.one, self.two, self.a1, self.a2, self.p_n))

    def friction(self) -> np.ndarray:
        """What is left of (5) and (11)."""
        return friction_rows(self.p_n, self.p, self.slip, self.mu, self.e)


@cache
def contacts(make: Callable[[], Case]) -> list[Contact]:
    """Every candidate pair of every step."""
    scene, h, steps, surfaces = make()
    model = Model(scene)
    stepper, state = EulerStepper(model), model.initial_state()
    found: list[Contact] = []
    for _ in range(steps):
        step = solve_step(stepper.search, StepNCP, state, h, h * model.loads(state.time))
        assert isinstance(step, StepSolution)
        found += read(model, step, state.advanced(step.nu, h), surfaces)
        attempt = stepper.step(state, h)
        assert len(attempt.solves) == 1
        state = attempt.solves[0].end
        np.testing.assert_allclose(state.v, step.nu[:, : model.dim], rtol=0, atol=1e-9)
    return found


def read(
    model: Model, step: StepSolution[Any], end: Any, surfaces: dict[str, list[Surface]]
) -> list[Contact]:
    """The contacts of a solution, their slip recomputed."""
    found = []
    for g, inputs in zip(step.problem.groups, step.problem.gather, strict=True):
        seen = g.seen(step.solution.z[inputs])
        kept = ["tor".index(c) for c in g.kernel.kind.components]
        for k in range(g.n):
            bodies, points, moving = [], [], []
            for body, r in ((int(g.first[k]), seen["r1"][k]), (int(g.second[k]), seen["r2"][k])):
                place = end.x[body] - end.R[body] @ model.com[body]
                bodies.append(Body(surfaces[model.names[body]], place, end.R[body]))
                points.append(end.x[body] + r)
                moving.append(velocity(step.nu[body], r))
            relative, dim = moving[1] - moving[0], model.dim
            p, e, slip = np.zeros((3, 3))
            p[kept], e[kept] = seen["p_f"][k], g.get("e")[k]
            slip[0] = seen["t"][k] @ relative
            if dim == 3:
                spin = step.nu[g.second[k], 3:] - step.nu[g.first[k], 3:]
                slip[1], slip[2] = seen["o"][k] @ relative, seen["n"][k] @ spin
            law = (float(seen["p_n"][k, 0]), p, slip, float(g.get("mu")[k, 0]), e)
            found.append(Contact(*bodies, *points, seen["n"][k], *law))
    return found


def velocity(nu: np.ndarray, r: np.ndarray) -> np.ndarray:
    """v + omega x r."""
    if r.size == 3:
        return np.asarray(nu[:3] + np.cross(nu[3:], r))
    return np.asarray(nu[:2] + nu[2] * np.array((-r[1], r[0])))


@pytest.mark.parametrize("make", SINGLE + INTERSECTIONS)
def test_steps_satisfy_the_papers_rows(make: Callable[[], Case]) -> None:
    """Closed contacts and open ones, sticking and sliding: what is left is rounding and the tolerance."""
    found = contacts(make)
    for c in found:
        assert np.abs(c.closest_points()).max() < 1e-10
        assert np.abs(c.signorini()).max() < 1e-10
        assert np.abs(c.friction()).max() < 1e-10
    assert any(c.p_n > 1e-3 for c in found)
    if make is not spinning_sphere:
        assert any(np.linalg.norm(c.a1 - c.a2) > 1e-3 for c in found)  # an open one
    if make in INTERSECTIONS:
        # on an edge or a corner, where several constraints are active
        assert any(np.sum(np.abs(c.two.values(c.a2)) < 1e-7) > 1 and c.p_n > 0 for c in found)


@pytest.mark.parametrize("make", SINGLE + INTERSECTIONS)
def test_other_points_and_impulses_do_not(make: Callable[[], Case]) -> None:
    """Negative controls: points, impulses and friction that are off by 1e-5 leave more than 1e-7."""
    d = 1e-5
    for c in contacts(make):
        along = np.linalg.svd(c.n[None])[2][-1]  # a direction across the normal
        curved = d * (c.n + along)
        assert np.abs(replace(c, a1=c.a1 + curved).closest_points()).max() > 0.1 * d
        assert np.abs(replace(c, a2=c.a2 + curved).closest_points()).max() > 0.1 * d
        pressed = c.p_n > 1e-3
        assert np.abs(replace(c, p_n=-d).signorini()).max() >= d
        if pressed:
            apart = replace(c, a1=c.a1 - d * c.n, a2=c.a2 + d * c.n)
            assert np.abs(apart.signorini()).max() > 0.1 * d
            deep = replace(c, a1=c.a1 + d * c.n, a2=c.a2 - d * c.n)
            assert np.abs(deep.signorini()).max() > 0.1 * d
            sliding = np.linalg.norm(c.e * c.slip) > 1e-3
            less = replace(c, p=0.99 * c.p) if sliding else replace(c, slip=c.slip + 1e-3)
            assert np.abs(less.friction()).max() > 1e-7
        elif np.linalg.norm(c.a1 - c.a2) > 1e-3:
            assert np.abs(replace(c, p_n=d).signorini()).max() >= d


# unknowns of C07's examples; ours, without and with its multiplier sigma
SIZES = {disc: (9, 8, 9), spinning_sphere: (17, 14, 15), sphere_on_two_spheres: (28, 32, 34)}


@pytest.mark.parametrize("make", SIZES)
def test_sizes_of_the_systems(make: Callable[[], Case]) -> None:
    """Unknowns of a step of C07's examples, theirs and ours, as docs/papers.md has them."""
    scene, *_ = make()
    theirs, ours, with_sigma = SIZES[make]
    bodies = sum(not b.fixed for b in scene.bodies.values())
    for form, size in (("projection", ours), ("fritz-john", with_sigma)):
        model = Model(scene, form)
        step = StepNCP(model, list(range(len(model.pairs))))
        assert step.size == size
        if scene.dim == 3:
            assert theirs == 6 * bodies + 11 * len(step.candidates)
