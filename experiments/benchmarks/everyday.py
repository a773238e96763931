"""Scenes as users build them: one body to a hundred, ours beside MuJoCo, whole calls with default settings.

Time is that of a whole call of `simulate` over its steps, after a short one that is not counted; of MuJoCo
that of loading the model and of a loop over `mj_step`. Beside it stand what a run must not hide: steps that
failed or were divided, the worst residuals, overlap of both, the largest gain of an island in a step, and how
far bodies that have come to rest creep in ten seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.experiments.benchmarks.events import remainders
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, panels
from implicit_geom.interface.progress import reporting

try:
    from implicit_geom.experiments.peers import mujoco_scene
except ImportError:  # (the extra `peers`)
    mujoco_scene = None  # type: ignore[assignment]

TITLE = "everyday scenes of 1 to 125 bodies beside MuJoCo: time of whole calls, and what went wrong"
PARAMS: dict[str, Any] = {"duration": 2.0, "rest": 10.0, "most": 125}
QUICK: dict[str, Any] = {"duration": 0.2, "rest": 0.1, "most": 5}

GRAVITY = 9.81
MU = 0.5
PLACE = 0.13  # m, of a body in a layer
RESIDUAL, OVERLAP = 1e-9, 1e-9  # m/s; of the smallest body's size
DIVIDED = 0.02  # of the steps
COLUMNS = ("scene", "bodies", "steps", "ours", "mujoco", "ratio", "failed", "divided", "euler", "residual")
COLUMNS += ("overlap", "sinks", "gain", "drift", "creep")


@dataclass(frozen=True)
class Everyday:
    """A scene: how it is built, its step, and whether all of it rests in the end."""

    build: Callable[[], Scene]
    step: float = 0.01
    rests: bool = False


def on_floor(mu: float = MU, restitution: float = 0.0) -> Scene:
    scene = Scene(gravity=(0, 0, -GRAVITY))
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.friction(mu=mu, restitution=restitution)
    return scene


def one(shape: shapes.Shape, *, restitution: float = 0.0, **start: Any) -> Callable[[], Scene]:
    """A body that is thrown."""

    def build() -> Scene:
        scene = on_floor(restitution=restitution)
        given = {
            "position": (0, 0, 0.3),
            "orientation": (0.8, 0.3, 0.4, 0.2),
            "velocity": (1, 0.3, 0),
            "angular_velocity": (3, 5, 1),
        }
        scene.add("body", shape, mass=1.0, **{**given, **start})
        return scene

    return build


def in_a_bin(
    shape: shapes.Shape, count: int, side: int, *, height: float = 0.14, seed: int = 0, spin: float = 1.0
) -> Callable[[], Scene]:
    """Bodies in layers over a floor between four walls, turned and moving at random."""

    def build() -> Scene:
        rng = np.random.default_rng(seed)
        scene = on_floor()
        for k, normal in enumerate(((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0))):
            wall = shapes.halfspace(normal, offset=-(PLACE * side / 2 + 0.025))
            scene.add(f"wall {k}", wall, fixed=True)
        for k in range(count):
            layer, rest = divmod(k, side**2)
            across = (np.array(divmod(rest, side)) - (side - 1) / 2) * PLACE + rng.uniform(-0.005, 0.005, 2)
            q = rng.normal(size=4)
            scene.add(
                f"body {k}",
                shape,
                mass=0.2,
                position=(*across, 0.1 + height * layer),
                orientation=q / np.linalg.norm(q),
                velocity=0.3 * rng.normal(size=3),
                angular_velocity=spin * rng.normal(size=3),
            )
        return scene

    return build


def stack(count: int, masses: tuple[float, float] = (1.0, 1.0)) -> Callable[[], Scene]:
    """Boxes on each other, a little off the middle; masses from the lowest to the highest."""

    def build() -> Scene:
        scene = on_floor()
        for k, mass in enumerate(np.geomspace(*masses, count).tolist()):
            off = 0.002 * (-1) ** k
            scene.add(f"box {k}", shapes.box(0.1, 0.1, 0.05), mass=mass, position=(off, 0, 0.05 + 0.1 * k))
        return scene

    return build


def spheres_in_line() -> Scene:
    """Contacts one after the other from 10 g to 100 kg: spheres in a groove, pressed along it by gravity."""
    scene = Scene(gravity=(-3.0, 0, -GRAVITY))
    for name, normal in (("left", (0, 1, 1)), ("right", (0, -1, 1)), ("end", (1, 0, 0))):
        scene.add(name, shapes.halfspace(normal), fixed=True)
    scene.friction(mu=0.2)
    for k, mass in enumerate(np.geomspace(0.01, 100, 6).tolist()):
        scene.add(f"ball {k}", shapes.sphere(0.1), mass=mass, position=(0.1 + 0.2 * k, 0, 0.1 * np.sqrt(2)))
    return scene


def groove() -> Scene:
    scene = Scene(gravity=(0, 0, -GRAVITY))
    for name, normal in (("left", (0, 1, 1)), ("right", (0, -1, 1))):
        scene.add(name, shapes.halfspace(normal), fixed=True)
    scene.friction(mu=MU)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0, 0.03, 0.25), velocity=(1, 0, 0))
    return scene


def against_a_step() -> Scene:
    scene = on_floor()
    scene.add("step", shapes.box(0.2, 1.0, 0.04), fixed=True, position=(0.8, 0, 0.04))
    scene.add("box", shapes.box(0.1, 0.08, 0.06), mass=1.0, position=(0, 0, 0.06), velocity=(3, 0.1, 0))
    return scene


def wedge() -> Scene:
    """A wedge that two boxes on the floor hold up by friction."""
    scene = on_floor(mu=0.8)
    half, depth = 0.05, 0.1
    corners = [(x, y, z) for y in (-depth, depth) for x, z in ((0, -0.1), (half, 0.1), (-half, 0.1))]
    middle = shapes.polyhedron(np.array(corners, float))
    slope = half / 0.2
    for side in (-1, 1):
        x = [(0.005, -0.1), (0.005 + 0.15, -0.1), (0.155, 0.1), (0.005 + 0.2 * slope, 0.1)]
        block = shapes.polyhedron(np.array([(side * a, y, z) for y in (-depth, depth) for a, z in x]))
        scene.add(f"block {side}", block, mass=5.0, position=tuple(np.add(block.com, (0, 0, 0.1))))
    scene.add("wedge", middle, mass=0.5, position=tuple(np.add(middle.com, (0, 0, 0.125))))
    return scene


def arch(stones: int = 7) -> Scene:
    """Stones of a half ring, each a polyhedron, on the floor."""
    scene = on_floor(mu=0.8)
    inner, outer, depth = 0.4, 0.55, 0.1
    edges = np.linspace(0, np.pi, stones + 1)
    for k, (low, high) in enumerate(pairwise(edges)):
        ring = [
            (r * np.cos(a), r * np.sin(a))
            for r, a in ((inner, low), (outer, low), (outer, high), (inner, high))
        ]
        stone = shapes.polyhedron(np.array([(x, y, z) for y in (-depth, depth) for x, z in ring]))
        scene.add(f"stone {k}", stone, mass=1.0, position=tuple(stone.com))
    return scene


def planar_pile(shape: shapes.Shape, count: int, across: int) -> Callable[[], Scene]:
    def build() -> Scene:
        rng = np.random.default_rng(0)
        scene = Scene(dim=2, gravity=(0, -GRAVITY))
        scene.add("floor", shapes.halfplane((0, 1)), fixed=True)
        for name, side in (("left", 1), ("right", -1)):
            scene.add(name, shapes.halfplane((side, 0), offset=-PLACE * across / 2 - 0.01), fixed=True)
        scene.friction(mu=MU)
        for k in range(count):
            row, place = divmod(k, across)
            x = (place - (across - 1) / 2) * PLACE + rng.uniform(-0.005, 0.005)
            spin = float(rng.normal())
            scene.add(f"body {k}", shape, mass=0.2, position=(x, 0.1 + PLACE * row), angular_velocity=spin)
        return scene

    return build


BALL, EGG, BOX = shapes.sphere(0.05), shapes.ellipsoid(0.06, 0.045, 0.035), shapes.box(0.04, 0.035, 0.03)
CAPSULE, CYLINDER, CONE = shapes.capsule(0.025, 0.06), shapes.cylinder(0.035, 0.06), shapes.cone(0.04, 0.06)
SUPER = shapes.superellipsoid(0.045, 0.04, 0.035, 4)
HAMMER = shapes.union(shapes.cylinder(0.03, 0.4), shapes.box(0.05, 0.05, 0.1).moved((0, 0, 0.25)))
SCENES = {
    "rolling ellipsoid": Everyday(
        one(shapes.ellipsoid(0.5, 0.4, 0.3), orientation=(1, 0, 0, 0), angular_velocity=(0, 3, 0))
    ),
    "egg, e = 0.8": Everyday(one(EGG, restitution=0.8)),
    "box": Everyday(one(BOX)),
    "capsule": Everyday(one(CAPSULE)),
    "cylinder": Everyday(one(CYLINDER)),
    "cone": Everyday(one(CONE)),
    "superellipsoid": Everyday(one(SUPER)),
    "coin": Everyday(one(shapes.cylinder(0.012, 0.002), position=(0, 0, 0.1))),
    "hammer": Everyday(one(HAMMER, position=(0, 0, 0.6))),
    "ball in a groove": Everyday(groove),
    "box against a step": Everyday(against_a_step),
    "2 ellipsoids": Everyday(in_a_bin(EGG, 2, 2)),
    "5 ellipsoids": Everyday(in_a_bin(EGG, 5, 2)),
    "5 dice in a tray": Everyday(in_a_bin(shapes.box(0.03, 0.03, 0.03), 5, 3, spin=10), step=0.005),
    "wedge": Everyday(wedge, rests=True),
    "6 balls, masses 1 to 1e4": Everyday(spheres_in_line, rests=True),
    "arch of 7 stones": Everyday(arch, rests=True),
    "8 spheres": Everyday(in_a_bin(BALL, 8, 2)),
    "8 ellipsoids": Everyday(in_a_bin(EGG, 8, 2)),
    "8 boxes": Everyday(in_a_bin(BOX, 8, 2)),
    "8 capsules": Everyday(in_a_bin(CAPSULE, 8, 2)),
    "8 cylinders": Everyday(in_a_bin(CYLINDER, 8, 2)),
    "8 cones": Everyday(in_a_bin(CONE, 8, 2)),
    "8 superellipsoids": Everyday(in_a_bin(SUPER, 8, 2)),
    "stack of 10 boxes": Everyday(stack(10), rests=True),
    "10 boxes, masses 1 to 1e4": Everyday(stack(10, (0.01, 100.0)), rests=True),
    "10 discs": Everyday(planar_pile(shapes.disc(0.05), 10, 4)),
    "10 rectangles": Everyday(planar_pile(shapes.rectangle(0.05, 0.03), 10, 4)),
    "16 marbles in a tray": Everyday(in_a_bin(shapes.sphere(0.03), 16, 4)),
    "27 spheres": Everyday(in_a_bin(BALL, 27, 3)),
    "27 ellipsoids": Everyday(in_a_bin(EGG, 27, 3)),
    "27 boxes": Everyday(in_a_bin(BOX, 27, 3)),
    "125 spheres": Everyday(in_a_bin(BALL, 125, 5)),
}


def run(params: dict[str, Any]) -> dict[str, Table]:
    counts = {name: sum(not b.fixed for b in s.build().bodies.values()) for name, s in SCENES.items()}
    chosen = [name for name in SCENES if counts[name] <= params["most"]]
    rows = []
    with reporting(None, len(chosen)) as done:
        for number, name in enumerate(chosen):
            rows.append((name, counts[name], *measure(SCENES[name], params["duration"], params["rest"])))
            done(number + 1)
    return {"scenes": columns(COLUMNS, rows)}


def measure(scene: Everyday, duration: float, rest: float) -> tuple[Any, ...]:
    options = {"step": scene.step, "on_failure": "record", "progress": False}
    simulate(scene.build(), duration=2 * scene.step, **options)
    built = scene.build()
    began = time.perf_counter()
    ours = simulate(built, duration=duration, **options)
    seconds = time.perf_counter() - began
    steps = len(ours.good_steps)
    table = ours.steps
    size = min(b.shape.size for b in built.bodies.values() if not b.fixed)
    residual = max(float(np.nanmax(table[name])) for name in ("dynamics", "complementarity", "friction"))
    gain = float(remainders(ours)[:, 0].max(initial=0.0))
    drift = np.nan
    if scene.rests and not ours.failed:
        drift = crept(ours.resume(duration=rest), steps)
    peer, ratio, sinks, creep = np.nan, np.nan, np.nan, np.nan
    if mujoco_scene is not None and built.dim == 3:
        found = mujoco_scene.simulate(built, MU, duration, scene.step)
        peer, watched = (
            found.load + found.loop,
            mujoco_scene.simulate(built, MU, duration, scene.step, watched=True),
        )
        ratio, sinks = seconds / peer, watched.depth / size
        if scene.rests:
            later = mujoco_scene.simulate(built, MU, duration + rest, scene.step, watched=True).position
            creep = float(np.linalg.norm(later[-1] - later[steps], axis=1).max())
    return (
        steps,
        1e6 * seconds / max(steps, 1),
        1e6 * peer / max(steps, 1),
        ratio,
        int(ours.failed),
        float(np.mean(table["status"] == "substepped")),
        float(np.mean(table["guard"] == "euler")),
        residual,
        ours.max_penetration / size,
        sinks,
        gain,
        drift,
        creep,
    )


def crept(run: Trajectory, since: int) -> float:
    """How far the centre of a body has moved since a row, m, at the most."""
    moving = [name for name, body in run.scene.bodies.items() if not body.fixed]
    return float(max(np.linalg.norm(run[n].position[-1] - run[n].position[since]) for n in moving))


def report(tables: dict[str, Table]) -> str:
    t = tables["scenes"]
    lines = [
        f"  {'scene':27}{'us a step':>11}{'MuJoCo':>9}{'ratio':>8}{'failed':>8}{'divided':>9}{'Euler':>8}"
        f"{'residual':>10}{'overlap':>9}{'MuJoCo':>9}{'gain':>9}{'drift, m':>10}{'MuJoCo':>9}"
    ]
    for i in range(len(t["scene"])):
        r = {name: values[i] for name, values in t.items()}
        lines.append(
            f"  {r['scene']:27}{r['ours']:11.0f}{r['mujoco']:9.0f}{r['ratio']:8.1f}{r['failed']:8d}"
            f"{100 * r['divided']:7.1f} %{100 * r['euler']:6.1f} %{r['residual']:10.0e}{r['overlap']:9.0e}"
            f"{r['sinks']:9.0e}{r['gain']:9.0e}{r['drift']:10.0e}{r['creep']:9.0e}"
        )
    return "\n".join(lines)


def check(tables: dict[str, Table]) -> list[Check]:
    t = tables["scenes"]
    return [
        at_most("scenes that failed", t["failed"].sum(), 0),
        at_most("residual", t["residual"].max(), RESIDUAL, "m/s"),
        at_most("overlap / size", t["overlap"].max(), OVERLAP),
    ]


def plot(tables: dict[str, Table]) -> dict[str, Any]:
    t = tables["scenes"]
    figure, grid = panels(1, 1, (6.5, 6.5))
    axes = grid[0, 0]
    place = np.arange(len(t["scene"]))
    axes.semilogx(t["mujoco"], place, "o", color=GREY, label="MuJoCo")
    axes.semilogx(t["ours"], place, "o", color=BLUE, label="ours")
    many = t["divided"] > DIVIDED
    axes.semilogx(t["ours"][many], place[many], "o", color=ORANGE, label="ours, 2 % of the steps divided")
    axes.set_yticks(place, t["scene"])
    axes.invert_yaxis()
    axes.set_xlabel("whole call, us a step")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return {"everyday": figure}
