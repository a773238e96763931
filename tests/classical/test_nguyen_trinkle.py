"""A vertex against a whole convex shape: NT12's rows hold, corners are passed, unions are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from implicit_geom import Scene, Stepper, Trajectory, shapes, simulate
from implicit_geom.classical.stepper import ClassicalStepper
from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import Model
from implicit_geom.scene.scene_file import read_scene

NEW = "nguyen-trinkle"
OLD = Stepper.named(NEW, scheme="conjunction")


def sliding(pieces: bool = True, **start: Any) -> Scene:
    """A box that slides over a crack between two blocks, one body or two."""
    scene = Scene(dim=2)
    left = shapes.rectangle(1, 0.2).moved((-1, -0.2))
    right = shapes.rectangle(1, 0.2).moved((1.003, -0.2))
    if pieces:
        scene.add("ground", shapes.union(left, right), fixed=True)
    else:
        scene.add("left", left, fixed=True)
        scene.add("right", right, fixed=True)
    given = {"position": (-0.33, 0.13), "velocity": (2, 0), "orientation": 0.02, **start}
    scene.add("box", shapes.rectangle(0.2, 0.1), mass=1.0, **given)
    scene.friction(mu=0.1)
    return scene


def rows_11(psi: np.ndarray, force: np.ndarray, *, printed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """z and w of [NT12, eq. 11] for one contact, its auxiliary variables by their own rows.

    `printed`: the rows of lambda carry psi_i, as the paper prints them, instead of psi_1.
    """
    n = len(psi)
    c = np.zeros(n)  # c_1 is not there
    for j in range(1, n):
        c[j] = max(psi[j] - psi[0] - c[1:j].sum(), 0.0)
    d = np.maximum(-psi, 0.0)
    total = c[1:].sum()
    top = total + psi[0]
    w_c = [c[j] - psi[j] + c[1:j].sum() + psi[0] for j in range(1, n)]
    w_l = d + total + (psi if printed else psi[0])
    e = max(top, 0.0)  # alpha = 1
    z = np.concatenate([c[1:], d, force, [e]])
    return z, np.concatenate([w_c, d + psi, w_l, [top - e]])


def test_the_papers_rows_hold_in_every_step() -> None:
    """c, d, lambda and e of every contact solve (11): z >= 0, w >= 0, z.w = 0; and some facet presses."""
    model = Model(sliding())
    stepper, state, h = ClassicalStepper(model, Stepper.named(NEW)), model.initial_state(), 0.008
    pressed = 0
    for _ in range(40):
        attempt = stepper.step(state, h)
        assert not attempt.reason
        solve = attempt.solves[-1]
        step: Any = stepper.problem
        rows = step.finder.rows(state, np.array([0.0, 0.05]))
        psi = rows.facets.gap / h + rows.facets.normal_velocity(solve.half)
        keys = list(zip(rows.facets.pair.tolist(), rows.facets.feature.tolist(), strict=True))
        force = np.zeros(len(psi))
        for record in solve.contacts:
            if record.p_n > 0:
                force[keys.index((record.pair, record.feature))] = record.p_n
        assert np.count_nonzero(force) == sum(r.p_n > 0 for r in solve.contacts)
        for k in range(len(rows.first)):
            own = rows.contact == k
            z, w = rows_11(psi[own], force[own])
            assert min(z.min(), w.min()) > -1e-10
            assert np.max(np.abs(z * w)) < 1e-10
            pressed += int(np.any(force[own] > 0))
        state = solve.end
    assert pressed > 40


def test_the_erratum() -> None:
    """A vertex pressed on the last facet solves the rows as corrected, and not as printed."""
    psi, force = np.array([-0.3, -1.0, 0.0]), np.array([0.0, 0.0, 2.0])
    z, w = rows_11(psi, force)
    assert min(z.min(), w.min()) > -1e-15
    assert abs(z @ w) < 1e-15
    z, w = rows_11(psi, force, printed=True)
    assert abs(z @ w) > 0.1


def test_a_corner_is_passed() -> None:
    """NT12, Fig. 1: a box flies past a corner untouched; the conjunction of half-spaces stops it."""
    scene = Scene(dim=2, gravity=(0, 0))
    scene.add("block", shapes.rectangle(1, 1), fixed=True, position=(-1, -1))
    # its lower left corner passes the block's corner at the origin by a hair, over the top and down the side
    scene.add("box", shapes.rectangle(0.1, 0.1), mass=1.0, position=(0.099, 0.11), velocity=(1, -1))
    free = simulate(scene, duration=0.3, step=0.01, stepper=NEW)
    assert len(free.contacts) == 0
    np.testing.assert_allclose(free["box"].velocity[-1], (1, -1))
    stopped = simulate(scene, duration=0.3, step=0.01, stepper=OLD)
    assert len(stopped.contacts) > 0
    assert stopped["box"].velocity[-1, 1] > -0.9


def test_a_facet_is_chosen_anew() -> None:
    """A vertex whose velocity leads it onto the top, and a force past the side, is not held by the top."""
    scene = Scene(dim=2, gravity=(0, 0))
    scene.add("block", shapes.rectangle(1, 1), fixed=True, position=(-1, -1))
    scene.add("box", shapes.rectangle(0.1, 0.1), mass=1.0, position=(0.094, 0.105), velocity=(0, -1))
    scene.applied("box", force=(100, 0))
    run = simulate(scene, duration=0.01, step=0.01, stepper=NEW)
    np.testing.assert_allclose(run["box"].velocity[-1], (1, -1))


def test_over_a_crack() -> None:
    """The box slides over the crack at the speed that friction leaves it; the old model catches it there."""
    start = {"position": (-0.3, 0.1), "orientation": 0.0}
    run = simulate(sliding(**start), duration=0.4, step=0.008, stepper=NEW)
    np.testing.assert_allclose(run["box"].velocity[:, 0], 2 - 0.981 * run.time, atol=1e-9)
    assert run["box"].position[-1, 0] > 0.3
    assert run.max_penetration < 1e-12
    for name in ("dynamics", "gap", "complementarity", "friction"):
        assert np.max(run.steps[name]) < 1e-9
    old = simulate(sliding(**start), duration=0.2, step=0.008, stepper=OLD)
    assert old["box"].velocity[-1, 0] < 1.0


def test_on_one_plane_it_is_stewart_and_trinkles() -> None:
    """Where a vertex sees one facet only, both models and `stewart-trinkle` are the same scheme."""
    scene = Scene(dim=2)
    scene.add("ground", shapes.halfplane((0.1, 1)), fixed=True)
    scene.add("box", shapes.rectangle(0.3, 0.2), mass=1.0, position=(0, 0.5), orientation=0.3)
    scene.friction(mu=0.3)
    ends = [
        simulate(scene, duration=0.6, step=0.01, stepper=s)["box"].position
        for s in (NEW, OLD, "stewart-trinkle")
    ]
    np.testing.assert_allclose(ends[0], ends[2], atol=1e-9)
    np.testing.assert_allclose(ends[1], ends[2], atol=1e-9)


def test_a_union_is_its_pieces() -> None:
    """A fixed union and its pieces as bodies of their own give the same motion."""
    one, two = (simulate(sliding(pieces), duration=0.3, step=0.008, stepper=NEW) for pieces in (True, False))
    np.testing.assert_allclose(one["box"].position, two["box"].position, atol=1e-12)
    assert set(one.contacts["first"]) == {"ground"}


def test_a_union_that_moves() -> None:
    """A table on its two feet: weight and moment by statics, several rows a step."""
    feet = shapes.union(
        shapes.rectangle(0.5, 0.05).moved((0, 0.2)),
        shapes.rectangle(0.05, 0.1).moved((-0.4, 0.1)),
        shapes.rectangle(0.05, 0.1).moved((0.4, 0.1)),
    )
    scene = Scene(dim=2)
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.add("table", feet, mass=2.0, position=feet.com)
    scene.friction(mu=0.3)
    run = simulate(scene, duration=0.1, step=0.01, stepper=NEW)
    last = run.contacts[run.contacts["time"] == run.time[-1]]
    assert len(last) > 1
    assert last["p_n"] @ last["point"][:, 0] == pytest.approx(0, abs=1e-10)  # of its four corners not unique
    assert last["p_n"].sum() == pytest.approx(2 * 9.81 * 0.01, rel=1e-9)
    np.testing.assert_allclose(run["table"].position[-1], feet.com, atol=1e-12)


@pytest.mark.parametrize("stepper", [NEW, OLD], ids=["new", "old"])
def test_saved_and_continued(stepper: Any, tmp_path: Path) -> None:
    """A run that is saved, loaded and continued equals the unbroken one bit for bit."""
    whole = simulate(sliding(), duration=0.16, step=0.008, stepper=stepper)
    simulate(sliding(), duration=0.08, step=0.008, stepper=stepper).save(tmp_path / "run.h5")
    run = Trajectory.load(tmp_path / "run.h5").resume(duration=0.08)
    assert np.array_equal(run["box"].position, whole["box"].position)
    assert np.array_equal(run.contacts, whole.contacts)


def test_in_a_scene_file() -> None:
    """The stepper is named in a scene file, its scheme as a field of the table."""
    from implicit_geom.scene.scene_file import to_dict

    plain = to_dict(sliding())
    table = {"name": NEW, "scheme": "conjunction"}
    plain["simulation"] = {"duration": 0.08, "step": 0.008, "stepper": table}
    scene, options = read_scene(plain)
    run = simulate(scene, **options)
    assert run.options.switches == OLD


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: simulate(_spatial(), duration=0.1, step=0.01, stepper=NEW), "is planar"),
        (lambda: simulate(sliding(), duration=0.1, step=0.01, stepper="stewart-trinkle"), "only nguyen-"),
        (lambda: Stepper.named(NEW, gap="end"), "does not go with"),
        (lambda: Stepper.named(NEW, scheme="conjunctions"), "did you mean 'conjunction'"),
        (lambda: simulate(sliding(position=(-1, 0)), duration=0.1, step=0.01, stepper=NEW), "overlap by"),
    ],
)  # fmt: skip
def test_refused(make: Any, words: str) -> None:
    """Every error says what is wrong and what to take instead."""
    with pytest.raises(SceneError, match=words):
        make()


def _spatial() -> Scene:
    scene = Scene()
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add("box", shapes.box(0.1, 0.1, 0.1), mass=1.0, position=(0, 0, 0.2))
    return scene
