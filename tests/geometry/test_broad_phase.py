"""Pairs are numbered once and made on demand; near pairs are found without looking at all of them."""

from __future__ import annotations

import tracemalloc
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from searching import euler_run

from implicit_geom import Scene, shapes
from implicit_geom.geometry import broad_phase as broadphase
from implicit_geom.geometry.broad_phase import BroadPhase
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.geometry.supports import Supports, overlapping_spheres
from implicit_geom.interface.errors import SceneError
from implicit_geom.machine.availability import SWITCH
from implicit_geom.model.contact_group import WarmStart
from implicit_geom.model.model import Model, State
from implicit_geom.rotation import unit
from implicit_geom.steppers.memory import StepperMemory
from implicit_geom.steppers.search import SearchOptions


def crowd(count: int, seed: int = 0) -> Scene:
    """Ellipsoids and boxes of many sizes, some fixed, over two half-spaces."""
    rng = np.random.default_rng(seed)
    scene = Scene()
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    for k in range(count):
        a = 0.02 * 2.0 ** rng.integers(0, 5)
        shape = shapes.ellipsoid(a, 0.7 * a, 0.5 * a) if k % 2 else shapes.box(a, a, 0.5 * a)
        mass = {"fixed": True} if k % 7 == 3 else {"mass": 1.0}
        place = rng.uniform(0.5, 2.5, 3)
        scene.add(f"b{k}", shape, position=place, orientation=unit(rng.normal(size=4)), **mass)
    scene.add("wall", shapes.halfspace((1, 0, 0)), fixed=True)
    scene.friction(mu=0.4)
    scene.friction("b1", "b4", mu=0.1)
    return scene


def test_pairs_are_numbered_in_order() -> None:
    """Pair c is the c-th of all (i, j), i < j, without two fixed bodies; half-spaces come first."""
    model = Model(crowd(20))
    fixed = [b.fixed for b in model.bodies]
    wanted = [(i, j) for i, j in combinations(range(len(fixed)), 2) if not (fixed[i] and fixed[j])]
    assert len(model.pairs) == len(wanted)
    i, j = model.pairs.ends(np.arange(len(wanted)))
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == wanted
    assert np.array_equal(model.pairs.number(i, j), np.arange(len(wanted)))
    for c, (i, j) in enumerate(wanted):
        pair = model.pairs[c]
        wall = model.bodies[j].shape.kind == "halfspace"
        assert (pair.first, pair.second, pair.swapped) == ((j, i, True) if wall else (i, j, False))
        assert pair.law == model.scene.pair_friction(model.names[i], model.names[j])
        assert pair.kernel.kind.first.structure == model.bodies[pair.first].shape.structure
        assert pair.kernel.kind.moves == (not fixed[pair.first], not fixed[pair.second])
    assert model.pairs[3] is model.pairs[3]
    with pytest.raises(IndexError):
        model.pairs[len(wanted)]


def test_laws_attached_to_a_body() -> None:
    """The default law attached to a body holds for its pairs, others lose the direction."""
    scene = Scene()
    for k in range(4):
        scene.add(f"s{k}", shapes.sphere(0.1), mass=1.0, position=(k, 0, 0))
    scene.friction(mu=0.3, direction=(0, 0, 1), frame="s1")
    scene.friction("s2", "s3", mu=0.2, direction=(1, 0, 0), frame="s3")
    model = Model(scene)
    for i, j in combinations(range(4), 2):
        pair = model.pairs[int(model.pairs.number(i, j))]
        assert pair.law == scene.pair_friction(f"s{i}", f"s{j}")
        attached = {(0, 1): "second", (1, 2): "first", (1, 3): "first", (2, 3): "second"}
        assert pair.kernel.kind.frame == attached.get((i, j), "free")


def test_first_wrong_pair_is_named() -> None:
    """A wrong law is refused when the model is made, though no pair was asked for."""
    scene = crowd(5)
    scene.friction("b0", "b1", e_t=0.5)
    with pytest.raises(SceneError, match=r"friction\(b0, b1\)"):
        Model(scene)
    scene = crowd(5)
    scene.add("roof", shapes.halfspace((0, 0, -1)), mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    with pytest.raises(SceneError, match="'floor' and 'roof' are both unbounded"):
        Model(scene)


def test_spheres_that_meet_against_all_pairs() -> None:
    """The search by trees finds the pairs that comparing all of them finds, sizes from 1 to 1000."""
    rng = np.random.default_rng(1)
    for dim in (2, 3):
        x, radius = rng.uniform(size=(300, dim)), 1e-3 * 10.0 ** rng.uniform(0, 3, 300) / 4
        chosen = np.flatnonzero(rng.uniform(size=300) < 0.9)
        found = set(zip(*(k.tolist() for k in overlapping_spheres(x, radius, chosen)), strict=True))
        wanted = {
            (i, j)
            for i, j in combinations(chosen.tolist(), 2)
            if np.linalg.norm(x[i] - x[j]) <= radius[i] + radius[j]
        }
        assert len(wanted) > 100
        assert found == wanted


def test_supports_of_many_bodies() -> None:
    """Support values of many bodies at once are those of each body."""
    model = Model(crowd(12))
    state, supports = model.initial_state(), Supports(model)
    rng = np.random.default_rng(2)
    bounded = np.flatnonzero(np.isfinite(model.reach))
    n = rng.normal(size=(len(bounded), 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    for b, direction, value in zip(bounded, n, supports(state, bounded, n), strict=True):
        assert abs(model.placed(state, b).support(direction[None])[0] @ direction - value) < 1e-12


def test_tree_and_all_pairs_give_the_same_candidates() -> None:
    """Candidates, wider candidates and missed pairs do not depend on how near pairs are found."""
    model = Model(crowd(60))
    state = model.initial_state()
    rng = np.random.default_rng(3)
    nu = np.zeros((len(model.bodies), 6))
    nu[model.moving] = rng.normal(size=(model.moving.size, 6))
    state = State(0.0, state.x, state.q, nu[:, :3], nu[:, 3:])
    found = []
    for few in (10**9, 0):
        broad = BroadPhase(model, few)
        loads = model.loads(0.0)
        chosen = broad.candidates(state, 0.02, loads)
        found.append(
            [chosen, broad.pairs_ahead(state, 0.02, loads), broad.missed(state, 3 * nu, 0.02, chosen)]
        )
    assert found[0] == found[1]
    assert all(len(some) > 5 for some in found[0])


def test_five_thousand_discs_without_a_list_of_all_pairs() -> None:
    """Making the model of 5,000 discs and looking for overlaps makes nothing that grows with all pairs."""
    scene = Scene(dim=2)
    scene.add("floor", shapes.halfplane((0, 1)), fixed=True)
    for k in range(5000):
        scene.add(f"d{k}", shapes.disc(0.05), mass=1.0, position=(0.1 * (k % 70), 0.05 + 0.1 * (k // 70)))
    tracemalloc.start()
    try:
        model = Model(scene)
        assert BroadPhase(model).overlapping(model.initial_state(), 1e-8) == []
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(model.pairs) > 12_000_000
    assert most < 2 * len(model.pairs)  # bytes


class Counted(StepperMemory):
    """Counts the pairs whose closest points are found one by one."""

    single = 0

    def fresh(self, state: State, c: int) -> WarmStart:
        self.single += 1
        return super().fresh(state, c)


@pytest.mark.parametrize("dim", [2, 3])
def test_closest_points_of_many_pairs(dim: int) -> None:
    """Closest points found for many pairs at once are those found for each alone, touching ones included."""
    rng = np.random.default_rng(dim)
    scene = Scene(dim=dim)
    up = (0,) * (dim - 1) + (1,)
    scene.add("floor", shapes.halfplane(up) if dim == 2 else shapes.halfspace(up), fixed=True)
    for k in range(12):
        shape = shapes.ellipse(0.2, 0.1) if dim == 2 else shapes.ellipsoid(0.2, 0.15, 0.1)
        if k % 3 == 0:
            shape = shapes.disc(0.15) if dim == 2 else shapes.sphere(0.15)
        place = (0.45 * (k % 4), *([0.42 * (k // 4)] if dim == 3 else []), 0.3 + 0.45 * (k // 4))
        turn = rng.normal() if dim == 2 else unit(rng.normal(size=4))
        scene.add(f"b{k}", shape, mass=1.0, position=place, orientation=turn)
    for k, x in enumerate((5.0, 5.3)):  # two that touch
        ball = shapes.disc(0.15) if dim == 2 else shapes.sphere(0.15)
        scene.add(f"t{k}", ball, mass=1.0, position=(x, *(0,) * (dim - 2), 0.15))
    model = Model(scene)
    state = model.initial_state()
    together, alone = Counted(model), StepperMemory(model)
    pairs = together.broad.candidates(state, 0.1, model.loads(0.0))
    assert len(pairs) > together.batch
    together.add(state, pairs)
    assert set(together.warm) == set(pairs)
    assert together.single < 0.2 * len(pairs)
    touching = int(model.pairs.number(13, 14))
    assert touching in together.warm
    for c, start in together.warm.items():
        other = alone.fresh(state, c)
        layout = model.pairs[c].kernel.layout
        assert np.abs(start.unknowns - other.unknowns)[: layout.geometry].max() < 1e-11
        assert np.array_equal(start.direction, other.direction)
        assert np.abs(together.broad.normals[c] - alone.broad.normals[c]).max() < 1e-11


@pytest.mark.parametrize("closed", [False, True])
def test_crossings_of_many_pairs(closed: bool) -> None:
    """Looked at together, the same pairs cross as one by one; others stay apart, rolling ones nearly so."""
    rng = np.random.default_rng(4)
    scene = Scene()
    for k in range(40):
        place = (0.5 * (k % 5), 0.5 * (k // 5 % 4), 0.5 * (k // 20))
        velocity = rng.normal(size=3) * 3
        spin = rng.normal(size=3) * 5
        scene.add(
            f"e{k}",
            shapes.ellipsoid(0.22, 0.15, 0.1),
            mass=1.0,
            position=place,
            velocity=velocity,
            angular_velocity=spin,
        )
    model = Model(scene)
    state, broad = model.initial_state(), BroadPhase(model)
    nu, h = np.column_stack([state.v, state.w]), 0.1
    pairs = broad.candidates(state, h, model.loads(0.0))
    end = state.advanced(nu, h)
    left = {}
    for c in pairs:
        pair = model.pairs[c]
        there = find_closest_points(model.placed(end, pair.first), model.placed(end, pair.second))
        left[c] = there.unknowns, closed
    alone = {c for c in pairs if broad.crossed(state, nu, h, {c: left[c]}) is not None}
    together = set()
    while (crossing := broad.crossed(state, nu, h, left)) is not None:
        together.add(crossing)
        del left[crossing]
    assert together == alone
    assert len(alone) > 4
    allowed = broadphase.ROLLING * 0.1 if closed else broadphase.CROSSING * 0.22
    for c in left:
        pair = model.pairs[c]
        for s in np.linspace(0, h, 9):
            there = state.advanced(nu, s)
            if np.linalg.norm(there.x[pair.second] - there.x[pair.first]) > 2 * 0.22:
                continue  # (farther apart than they are long)
            gap = find_closest_points(
                model.placed(there, pair.first), model.placed(there, pair.second)
            ).points.gap
            assert gap >= -allowed


def jostling() -> Scene:
    """Ellipsoids close to each other that move in all directions."""
    rng = np.random.default_rng(5)
    scene = Scene(gravity=(0.0, 0.0, -9.81))
    scene.add("floor", shapes.halfspace((0, 0, 1)), fixed=True)
    for k in range(27):
        place = (0.24 * (k % 3), 0.24 * (k // 3 % 3), 0.13 + 0.24 * (k // 9))
        scene.add(
            f"e{k}",
            shapes.ellipsoid(0.12, 0.1, 0.08),
            mass=1.0,
            position=place,
            orientation=unit(rng.normal(size=4)),
            velocity=rng.normal(size=3),
        )
    scene.friction(mu=0.4)
    return scene


def test_likely_pairs() -> None:
    """A part of the candidates: at least all that would overlap at the end of the step if nothing touched."""
    model = Model(jostling())
    state, broad, h = model.initial_state(), BroadPhase(model), 0.02
    loads = model.loads(0.0)
    candidates = broad.candidates(state, h, loads)
    likely = broad.likely(state, h, loads, candidates)
    assert set(likely) < set(candidates)
    nu = np.column_stack([state.v, state.w])
    nu[model.moving, :3] += h * loads[model.moving, :3] / model.mass[model.moving, None]
    end = state.advanced(nu, h)
    overlapping = 0
    for c in candidates:
        pair = model.pairs[c]
        gap = find_closest_points(model.placed(end, pair.first), model.placed(end, pair.second)).points.gap
        overlapping += gap < 0
        assert c in likely or gap > 0
    assert overlapping > 5


def test_likely_pairs_first_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that begin with the likely pairs alone end where all candidates at once lead to."""
    monkeypatch.setenv(SWITCH, "0")
    at_once = euler_run(jostling(), SearchOptions(), duration=0.06, step=0.02)
    asked: list[int] = []
    likely = BroadPhase.likely

    def counted(self: BroadPhase, *given: Any) -> list[int]:
        found = likely(self, *given)
        asked.append(len(given[-1]) - len(found))
        return found

    monkeypatch.setattr(BroadPhase, "likely", counted)
    by_parts = euler_run(jostling(), SearchOptions(crowd=10), duration=0.06, step=0.02)
    assert max(asked) > 0
    assert at_once.steps["contacts"].max() > 5
    for name in at_once.names:
        assert np.abs(by_parts[name].velocity - at_once[name].velocity).max() < 1e-8
