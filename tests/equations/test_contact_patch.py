"""Where two touching bodies are flat: the patch projector has the right dimension and directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from implicit_geom import Scene, distance, shapes
from implicit_geom.contact.rattle_ncp import PositionNCP
from implicit_geom.model.model import Model
from implicit_geom.rotation import exp, matrix, multiply
from implicit_geom.steppers.rattle import RattleStepper

X, Y, Z = np.eye(3)
SLANT = np.arctan2(0.3, 0.5)  # half the opening angle of CONE
CONE = shapes.cone(0.3, 0.5)
BOX = shapes.box(0.2, 0.3, 0.1)
CYLINDER = shapes.cylinder(0.2, 0.6)
CAPSULE = shapes.capsule(0.2, 0.6)


def lowered(scene: Scene, name: str, shape: Any, turn: Any, above: np.ndarray, **more: Any) -> None:
    """Add a body that touches the first one, let down along -z (-y in the plane)."""
    first = next(iter(scene.bodies.values()))
    up = np.eye(scene.dim)[-1]
    if not first.shape.bounded:
        R = matrix(turn) if scene.dim == 3 else _planar(turn)
        n = np.array(first.shape.values[:-1])
        com = np.zeros(scene.dim) if more.get("fixed") else shape.com
        height = shape.support_value(-(R.T @ n)[None])[0] + (R.T @ n) @ com
        position = above + (height - above @ n) / (up @ n) * up
    else:
        centre = above - (matrix(turn) @ shape.com)
        gap = distance(first.shape, (np.zeros(3), exp(np.zeros(3))), shape, (centre, turn)).gap
        position = above - gap * up
    scene.add(name, shape, position=position, orientation=turn, **more)


def _planar(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def projector(scene: Scene, foot: np.ndarray | None = None) -> np.ndarray:
    """B of the only pair of a scene, whose bodies touch; `foot`: contact point, from the centre."""
    model = Model(scene)
    stepper, state = RattleStepper(model), model.initial_state()
    stepper.memory.fill(state, [0])
    if foot is not None:
        at = model.pairs[0].kernel.layout.at["r"]
        stepper.memory.warm[0].unknowns[at] = foot / model.size[model.pairs[0].second]
    problem = stepper.search.equations(PositionNCP, [0])
    problem.prepare(state, 0.01, 0.01 * model.loads(0.0), stepper.memory.warm, 1e-10)
    assert problem.starts[0].touching, problem.starts[0].gap
    (group,) = problem.groups
    return np.asarray(group.get("B")[0].reshape(scene.dim, scene.dim))


# shape, its turn, directions of the patch before the turn
ON_PLANE: dict[str, tuple[Any, np.ndarray, list[np.ndarray]]] = {
    "box face": (BOX, np.zeros(3), [X, Y]),
    "box side face": (BOX, np.pi / 2 * X, [X, Z]),
    "box edge": (BOX, 0.6 * X, [X]),
    "box edge, nearly a face": (BOX, 1e-3 * X, [X]),
    "box upright edge": (BOX, 0.4 * (X + Y) / np.sqrt(2) + 0.2 * Z, []),
    "box corner": (BOX, np.array([0.5, 0.4, 0.1]), []),
    "cylinder side": (CYLINDER, np.pi / 2 * X, [Z]),
    "cylinder end": (CYLINDER, np.zeros(3), [X, Y]),
    "cylinder rim": (CYLINDER, 0.7 * X, []),
    "sphere": (shapes.sphere(0.3), 0.3 * Y, []),
    "ellipsoid": (shapes.ellipsoid(0.5, 0.4, 0.3), 0.3 * Y, []),
    "cone base": (CONE, np.zeros(3), [X, Y]),
    # on its side: the line from the apex to the rim, which the turn lays level
    "cone side": (CONE, (np.pi / 2 + SLANT) * X, [Z * np.cos(SLANT) + Y * np.sin(SLANT)]),
    "cone rim": (CONE, 0.5 * X, []),
    "capsule side": (CAPSULE, np.pi / 2 * X, [Z]),
    "capsule end": (CAPSULE, 0.5 * X, []),
    "polyhedron face": (shapes.polyhedron([(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]), None, None),
}


@pytest.mark.parametrize("name", ON_PLANE)
@pytest.mark.parametrize("yaw", [0.0, 0.8])
@pytest.mark.parametrize("slope", [0.0, 0.4])
def test_patch_on_a_plane(name: str, yaw: float, slope: float) -> None:
    """Over a plane, level or not, and at any yaw: B projects on the directions the shape shares with it."""
    shape, turn, lines = ON_PLANE[name]
    world = multiply(exp(slope * Y), exp(yaw * Z))
    normal = matrix(exp(slope * Y)) @ Z
    if turn is None:  # a regular tetrahedron on one of its faces
        down = np.array([1.0, 1.0, -1.0]) / np.sqrt(3)
        axis = np.cross(down, -Z)
        turn = axis / np.linalg.norm(axis) * np.arccos(-down @ Z)
        lines = [np.cross(down, X), np.cross(down, np.cross(down, X))]
    q = multiply(world, exp(turn))
    scene = Scene()
    scene.add("plane", shapes.halfspace(normal), fixed=True)
    lowered(scene, "body", shape, q, np.array([0.3, 0.2, 2.0]), mass=1.0)
    R = matrix(q)
    expected = np.zeros((3, 3))
    if lines:
        basis = np.linalg.qr(np.array([R @ line for line in lines]).T)[0]
        expected = basis @ basis.T
        assert (
            np.max(np.abs(expected @ normal)) < 1e-12
        )  # the test's own geometry: the patch lies in the plane
    # a capsule's line, taken at its middle: at its ends it is no line any more
    B = projector(scene, -0.2 * normal if name == "capsule side" else None)
    assert round(np.trace(B)) == len(lines or [])
    assert np.max(np.abs(B - expected)) < 1e-9


BETWEEN: dict[str, tuple[Any, Any, np.ndarray, np.ndarray, list[np.ndarray]]] = {
    # below (fixed at the origin), above, turn, where it stands, directions of the patch
    "box face on box face": (shapes.box(1, 1, 0.1), BOX, 0.5 * Z, np.array([0.1, 0.2, 1]), [X, Y]),
    "box edge on box face": (shapes.box(1, 1, 0.1), BOX, 0.6 * X, np.array([0.1, 0.2, 1]), [X]),
    "box corner on box face": (
        shapes.box(1, 1, 0.1), BOX, np.array([0.5, 0.4, 0.1]), np.array([0.1, 0.2, 1]), [],
    ),
    "cylinder side on box face": (
        shapes.box(1, 1, 0.1), CYLINDER, np.pi / 2 * X, np.array([0, 0, 1.0]), [Y],
    ),
    "sphere on box face": (shapes.box(1, 1, 0.1), shapes.sphere(0.2), 0 * X, np.array([0, 0, 1.0]), []),
    "capsule along capsule": (
        CAPSULE.moved(orientation=exp(np.pi / 2 * X)), CAPSULE, np.pi / 2 * X, np.array([0, 0.1, 1]), [Y],
    ),
    "capsule across capsule": (
        CAPSULE.moved(orientation=exp(np.pi / 2 * X)), CAPSULE, np.pi / 2 * Y, np.array([0, 0.1, 1]), [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_patch_between_bodies(name: str) -> None:
    """Between two bodies the patch is what both have in common."""
    below, above, turn, where, lines = BETWEEN[name]
    scene = Scene()
    scene.add("below", below, fixed=True)
    lowered(scene, "above", above, exp(turn), where, mass=1.0)
    expected = sum((np.outer(v, v) for v in lines), np.zeros((3, 3)))
    B = projector(scene)
    assert round(np.trace(B)) == len(lines)
    assert np.max(np.abs(B - expected)) < 1e-9


@pytest.mark.parametrize(
    ("shape", "angle", "flat"),
    [
        (shapes.polygon([(-0.4, -0.3), (0.5, -0.3), (0, 0.6)]), 0.0, True),
        (shapes.polygon([(-0.4, -0.3), (0.5, -0.3), (0, 0.6)]), 0.2, False),
        (shapes.rectangle(0.5, 0.3), 0.0, True),
        (shapes.rectangle(0.5, 0.3), -0.4, False),
        (shapes.disc(0.5), 0.3, False),
    ],
)
def test_patch_in_the_plane(shape: Any, angle: float, flat: bool) -> None:
    """A polygon's side on a line is flat along it, its corner is not, nor is a disc."""
    scene = Scene(dim=2)
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    lowered(scene, "body", shape, angle, np.array([0.2, 2.0]), mass=1.0)
    assert np.max(np.abs(projector(scene) - np.diag([1.0 if flat else 0.0, 0.0]))) < 1e-9


def test_bodies_apart_push_at_the_end_point() -> None:
    """A pair that may touch along a patch but is apart has B = I; one that cannot has B = 0."""
    for shape, expected in ((BOX, np.eye(3)), (shapes.sphere(0.1), np.zeros((3, 3)))):
        scene = Scene()
        scene.add("plane", shapes.halfspace((0, 0, 1)), fixed=True)
        scene.add("body", shape, mass=1.0, position=(0, 0, 0.101), velocity=(0, 0, -1))
        model = Model(scene)
        stepper, state = RattleStepper(model), model.initial_state()
        stepper.memory.fill(state, [0])
        problem = stepper.search.equations(PositionNCP, [0])
        problem.prepare(state, 0.01, 0.01 * model.loads(0.0), stepper.memory.warm, 1e-10)
        assert not problem.starts[0].touching
        assert np.array_equal(problem.groups[0].get("B")[0].reshape(3, 3), expected)
