"""Impacts and landings at random: what the steps make of the laws, and of energy.

`impacts`: a body of every kind of shape, at a random attitude, with a random velocity and spin, strikes
a plane with one point; mu and e are drawn from lists. Up to the instant the reference is a free flight
(DOP853), at the impact the closed form of Newton's law (`impact_law`). The velocities after the recorded
impact are compared with it, over the speed of approach, and so is the energy where neither friction nor
restitution takes any.

`scenes`: one to three bodies of all kinds, some of them fifty times heavier than others, fall on a plane
and on each other. Of every step: whether it was solved, overlap, and what each island of contacts was
left with, over its own energy. An island of a step is what the contacts of all its parts connect.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.experiments.benchmarks.robustness import in_processes
from implicit_geom.experiments.check import Check, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.event_driven import Body, State, bounces
from implicit_geom.experiments.impact_runs import recorded, through
from implicit_geom.interface.progress import reporting
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.model import Model
from implicit_geom.model.model import State as ModelState
from implicit_geom.steppers.island_energy import island_energies

TITLE = "impacts of every kind of shape against closed forms; energy of random scenes, island by island"
PARAMS: dict[str, Any] = {"impacts": 500, "scenes": 400, "seed": 1, "jobs": 2}
QUICK: dict[str, Any] = {"impacts": 6, "scenes": 6, "jobs": 1}

MU = (0.0, 0.3, 1.0)
E = (0.0, 0.5, 1.0)
STEP = 1e-3  # s, of impacts
SCENE_STEP, DURATION = 1e-2, 1.5  # s, of scenes
HEAVY = 50.0  # of every fifth body, over the others
OFF = 1e-3  # velocities after an impact, over the speed of approach
KEPT = 1e-9  # energy that an impact may lose, of what is there, where nothing takes any
GAIN, LOSS = 1e-3, 1e-2  # of an island's energy, in a step
LOSSY = 0.02  # of the scenes may have a step that loses more
OVERLAP = 1e-9  # of the smallest body's size
IMPACT = ("kind", "number", "mu", "e", "instant", "off", "lost")
SCENE = ("number", "bodies", "kinds", "mu", "e", "steps", "failed", "euler", "gain", "loss", "at", "overlap")
SCENE += ("seconds",)


def _spatial(rng: np.random.Generator, size: float) -> dict[str, shapes.Shape]:
    a, b, c = size * rng.uniform(0.4, 1, 3)
    return {
        "sphere": shapes.sphere(a),
        "ellipsoid": shapes.ellipsoid(a, b, c),
        "thin ellipsoid": shapes.ellipsoid(size, size, size / 20),
        "superellipsoid": shapes.superellipsoid(a, b, c, rng.uniform(2.5, 10)),
        "box": shapes.box(a, b, c),
        "cylinder": shapes.cylinder(a, 2 * b),
        "capsule": shapes.capsule(a / 2, b),
        "cone": shapes.cone(a, 1.5 * b),
    }


def _planar(rng: np.random.Generator, size: float) -> dict[str, shapes.Shape]:
    a, b = size * rng.uniform(0.4, 1, 2)
    angles = np.sort(rng.uniform(0, 2 * np.pi, 5) / 5 + np.arange(5) * 2 * np.pi / 5)
    return {
        "disc": shapes.disc(a),
        "ellipse": shapes.ellipse(a, b),
        "superellipse": shapes.superellipse(a, b, rng.uniform(2.5, 10)),
        "rectangle": shapes.rectangle(a, b),
        "polygon": shapes.polygon(np.stack([a * np.cos(angles), b * np.sin(angles)], axis=1)),
    }


KINDS = (*_spatial(np.random.default_rng(0), 1.0), *_planar(np.random.default_rng(0), 1.0))


def run(params: dict[str, Any]) -> dict[str, Table]:
    jobs = [
        ("impact", kind, n, params["seed"]) for n in range(params["impacts"]) for kind in range(len(KINDS))
    ]
    jobs += [("scene", 0, n, params["seed"]) for n in range(params["scenes"])]
    impacts, scenes = [], []
    with reporting(None, len(jobs)) as done:
        for number, (what, row) in enumerate(in_processes(_measure, jobs, params["jobs"])):
            if row is not None:
                (impacts if what == "impact" else scenes).append(row)
            done(number + 1)
    return {"impacts": columns(IMPACT, impacts), "scenes": columns(SCENE, scenes)}


def report(tables: dict[str, Table]) -> str:
    """Impacts by kind of shape, and the scenes together."""
    impacts, scenes = tables["impacts"], tables["scenes"]
    lines = [f"  {'kind':16}{'impacts':>9}{'off, median':>13}{'worst':>9}{'lost, e = 1':>13}"]
    for kind in KINDS:
        here = impacts["kind"] == kind
        off, lost = impacts["off"][here], impacts["lost"][here]
        if len(off):
            lines.append(f"  {kind:16}{len(off):9d}{np.median(off):13.1e}{off.max():9.1e}{lost.max():13.1e}")
    lossy = int(np.sum(scenes["loss"] > LOSS))
    lines.append(
        f"  {len(scenes['number'])} scenes, {scenes['steps'].sum()} steps: {scenes['failed'].sum()} failed, "
        f"{scenes['euler'].sum()} with parts in the end-of-step form; largest gain "
        f"{scenes['gain'].max():.1e}, loss {scenes['loss'].max():.1e} ({lossy} scenes above {LOSS:g}); "
        f"{scenes['seconds'].sum():.0f} s"
    )
    return "\n".join(lines)


def check(tables: dict[str, Table]) -> list[Check]:
    impacts, scenes = tables["impacts"], tables["scenes"]
    return [
        at_most("velocities after an impact, off, over the approach", impacts["off"].max(), OFF),
        at_most("energy lost where nothing takes any", impacts["lost"].max(), KEPT),
        at_most("scenes that failed", scenes["failed"].sum(), 0),
        at_most("gain of an island in a step, over its energy", scenes["gain"].max(), GAIN),
        at_most("overlap / size", scenes["overlap"].max(), OVERLAP),
        at_most("share of scenes with a step that loses 1 %", np.mean(scenes["loss"] > LOSS), LOSSY),
    ]


def _measure(job: tuple[str, int, int, int]) -> tuple[str, tuple[Any, ...] | None]:
    what, kind, number, seed = job
    if what == "impact":
        return what, impact(KINDS[kind], np.random.default_rng([seed, kind, number]), number)
    return what, scene(np.random.default_rng([seed, 100, number]), number)


def impact(kind: str, rng: np.random.Generator, number: int) -> tuple[Any, ...] | None:
    """One impact; None where the law has several answers, or none is isolated."""
    flat = kind in _planar(np.random.default_rng(0), 1.0)
    shape = (_planar if flat else _spatial)(rng, 0.3)[kind]
    dim = 2 if flat else 3
    mu, e = rng.choice(MU), rng.choice(E)
    body = Body(shape, mu=float(mu), e=float(e))
    q = rng.uniform(0, 2 * np.pi) if flat else rng.normal(size=4)
    start = State(
        0.0,
        np.zeros(dim),
        np.array(q if flat else q / np.linalg.norm(q)),
        rng.normal(size=dim),
        5 * rng.normal(size=2 * dim - 3),
    )
    start.v[-1] = -abs(start.v[-1]) - 1.0
    above = -body.lowest(start)[0] + rng.uniform(4, 6) * STEP * abs(start.v[-1])
    x = np.zeros(dim)
    x[-1] = above
    start = replace(start, x=x)
    try:
        _, exact = next(bounces(body, start, 1.0))
    except ArithmeticError:  # (several impulses obey the law)
        return None
    assert exact is not None
    duration = STEP * np.ceil(exact.before.time / STEP + 1e-6)
    impacts = recorded(through(body, start, duration, STEP))
    if not impacts:
        return (kind, number, mu, e, np.inf, np.inf, np.inf)
    before, after = impacts[0]
    size = float(np.linalg.norm(body.lowest(exact.before)[1]))
    off = np.linalg.norm(after.v - exact.after.v) + size * np.linalg.norm(after.w - exact.after.w)
    lost = 0.0
    if mu == 0 and e == 1:
        lost = abs(body.energy(after) / body.energy(before) - 1)
    return kind, number, mu, e, abs(before.time - exact.before.time), off / exact.approach, lost


def random_scene(rng: np.random.Generator) -> tuple[Scene, list[str], float, float]:
    """One to three bodies over a plane, clear of each other; their kinds, mu and restitution."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    count, top, kinds = int(rng.integers(1, 4)), 0.0, []
    for i in range(count):
        of_all = _spatial(rng, float(rng.uniform(0.1, 0.4)))
        kind = str(rng.choice(list(of_all)))
        shape = of_all[kind]
        q = rng.normal(size=4)
        reach = float(np.linalg.norm(np.max(np.abs(shape.bounds), axis=0)))
        height = top + reach + float(rng.uniform(0.01, 0.2))
        scene.add(
            f"{kind} {i}",
            shape,
            mass=HEAVY if rng.random() < 0.2 else 1.0,
            position=(*rng.uniform(-0.05, 0.05, 2), height),
            orientation=q / np.linalg.norm(q),
            velocity=rng.normal(size=3) * 0.5,
            angular_velocity=rng.normal(size=3) * 3,
        )
        kinds.append(kind)
        top = height + reach
    e_r = 0.01 if rng.random() < 0.3 else 0.0
    mu, e = float(rng.uniform(0, 1)), float(rng.choice(E))
    scene.friction(mu=mu, e_r=e_r, restitution=e)
    return scene, kinds, mu, e


def scene(rng: np.random.Generator, number: int) -> tuple[Any, ...]:
    made, kinds, mu, e = random_scene(rng)
    started = time.perf_counter()
    result = simulate(made, duration=DURATION, step=SCENE_STEP, on_failure="record", progress=False)
    seconds = time.perf_counter() - started
    left = remainders(result)
    smallest = min(b.shape.size for b in made.bodies.values() if not b.fixed)
    return (
        number,
        len(kinds),
        ", ".join(kinds),
        mu,
        e,
        len(result.good_steps),
        int(result.failed),
        int(np.sum(result.good_steps["form"] == "euler") + np.sum(result.good_steps["guard"] == "euler")),
        float(left[:, 0].max(initial=0.0)),
        float(-left[:, 1].min(initial=0.0)),
        float(result.time[1 + np.argmin(left[:, 1])]) if len(left) else 0.0,
        result.max_penetration / smallest,
        seconds,
    )


def remainders(run: Trajectory) -> np.ndarray:
    """(steps, 2): what an island of contacts gained and lost the most in each step, over its own energy.

    What rounding makes of the energies at hand is neither, nor is that of motions which are slow to what
    gravity adds in a step.
    """
    model, solves = Model(run.scene), run.solves
    scale = EnergyScale(model, run.options.tolerance)
    found = island_energies(model, scale, run.initial, solves)
    path, h = solves.path(run.initial), np.abs(solves.table["h"])[:, None]
    before = ModelState(0.0, path.x[:-1], path.q[:-1], path.v[:-1], path.w[:-1])
    nothing = scale.rounding(before, np.where(h > 0, h, np.inf))
    nothing[:, model.moving] += slow_energy(run.scene, model, run.options.step)
    steps = solves.table["step"] - solves.table["step"].min(initial=1)
    out = np.zeros((len(run.good_steps), 2))
    for step in np.unique(steps).tolist():
        rows = np.flatnonzero(steps == step)
        group = connected_bodies(found.label[rows])
        label = found.label[rows]
        of = np.full(int(found.label.max(initial=-1)) + 1, -1)
        of[label[label >= 0]] = np.broadcast_to(group, label.shape)[label >= 0]
        here = np.flatnonzero(of >= 0)
        left = np.bincount(of[here], found.left[here], len(group))
        rounding = np.bincount(group, nothing[rows].sum(axis=0), len(group))
        hand = np.zeros(len(group))
        for own in label:  # (islands of one solve that later ones connect have what all of them have)
            each = np.unique(own[own >= 0])
            hand = np.maximum(hand, np.bincount(of[each], found.at_hand[each], len(group)))
        share = (
            np.sign(left) * np.maximum(np.abs(left) - rounding, 0) / np.maximum(hand, np.finfo(float).tiny)
        )
        out[step] = max(share.max(), 0.0), min(share.min(), 0.0)
    return out


def slow_energy(scene: Scene, model: Model, h: float) -> np.ndarray:
    """(moving bodies,) at a hundredth of the speed that gravity gives in h."""
    mass = np.array([scene.bodies[model.names[b]].mass for b in model.moving])
    return np.asarray(mass / 2 * (1e-2 * h * np.linalg.norm(scene.gravity)) ** 2)


def connected_bodies(label: np.ndarray) -> np.ndarray:
    """(B,) the same number where the islands (S, B) of some solve connect bodies."""
    solve, body = np.nonzero(label >= 0)
    island = label[solve, body]
    count = label.shape[1]
    size = count + int(island.max(initial=0)) + 1
    graph = coo_array((np.ones(len(body)), (body, count + island)), shape=(size, size))
    return connected_components(graph, directed=False)[1][:count]
