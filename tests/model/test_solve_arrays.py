"""Certificate and ledger over all solves at once equal plain loops over solves, bodies and contacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from solve_loops import each_solve, loop_ledger, loop_residuals

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.check.certificate import residuals, step_residuals
from implicit_geom.model.ledger import entries, step_ledger
from implicit_geom.model.model import Model
from implicit_geom.model.records import EULER, POSITION, VELOCITY
from implicit_geom.model.solve_arrays import SolveArrays, solve_arrays
from implicit_geom.scene.options import IMPLICIT


def disc() -> Scene:
    """In the plane: falls, bounces and slides; the ground is added last."""
    scene = Scene(dim=2, gravity=(0, -9.81))
    scene.add("body", shapes.disc(0.5), mass=1.0, position=(0, 0.53), velocity=(2, 0), angular_velocity=1.0)
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    scene.applied("body", force=(0.5, 0), torque=0.7)
    scene.friction(mu=0.2, restitution=0.4)
    return scene


def egg() -> Scene:
    """Falls, bounces, slides and rolls under a force and a torque that change with time."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    scene.add(
        "body", shapes.ellipsoid(0.5, 0.4, 0.3), mass=2.0, position=(0, 0, 0.35), velocity=(1, 0.5, 0),
        angular_velocity=(1, 0, 2),
    )  # fmt: skip
    scene.applied("body", force=lambda t: (5 * np.cos(9 * t), 2.0, -3.0), torque=lambda t: (0, t, 0.4))
    scene.friction(mu=0.3, e_r=0.02, restitution=0.3)
    return scene


def stack() -> Scene:
    """Three bodies move; friction along the world's axes, along a body's, and none."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    low, ball = shapes.ellipsoid(0.5, 0.4, 0.3), shapes.sphere(0.2)
    scene.add("low", low, mass=1.0, position=(0, 0, 0.3), velocity=(1, 0.3, 0), angular_velocity=(1, 2, 3))
    scene.add("high", ball, mass=2.0, position=(0.1, 0, 0.82), angular_velocity=(0, 1, 5))
    scene.add("far", ball, mass=1.0, position=(3, 0, 0.2), velocity=(0.4, 0, 0), angular_velocity=(0, 3, 1))
    scene.friction(mu=0.4, e_o=0.5, e_r=0.01, direction=(1, 2, 3))
    scene.friction("low", "high", mu=0.2, e_o=0.7, direction=(1, 0, 0.5), frame="low")
    scene.friction("ground", "far", mu=0.0)
    return scene


SCENES = [disc, egg, stack]
CASES = [(make, stepper) for make in SCENES for stepper in IMPLICIT]


@cache
def ran(make: Callable[[], Scene], stepper: str) -> Trajectory:
    return simulate(make(), duration=0.2, step=0.01, stepper=stepper, progress=False)


def shaken(run: Trajectory) -> SolveArrays:
    """The run's solves with everything changed by about 1e-2: their residuals are no longer rounding."""
    rng, solves = np.random.default_rng(7), run.solves

    def near(a: np.ndarray) -> np.ndarray:
        return a + 1e-2 * rng.standard_normal(a.shape)

    q = near(solves.q)
    if run.scene.dim == 3:
        q /= np.linalg.norm(q, axis=-1, keepdims=True)
    contacts = solves.contacts.copy()
    for name in ("point", "end_point", "normal", "tangent", "binormal", "gap", "bounce", "p_n", "p_t"):
        contacts[name] = near(contacts[name])
    if run.scene.dim == 3:
        contacts["p_o"], contacts["p_r"] = near(contacts["p_o"]), near(contacts["p_r"])
    for name in ("lagged", "slid", "impact"):
        contacts[name] = rng.integers(0, 2, len(contacts))
    parts = {name: near(getattr(solves, name)) for name in ("x", "v", "w", "half")}
    return replace(solves, q=q, contacts=contacts, **parts)


@pytest.mark.parametrize(("make", "stepper"), CASES)
def test_arrays_equal_loops(make: Callable[[], Scene], stepper: str) -> None:
    """Both forms agree on solves as they are, to rounding, and on changed ones, to 12 digits."""
    run = ran(make, stepper)
    model = Model(run.scene)
    for solves in (run.solves, shaken(run)):
        rows = list(each_solve(run.initial, solves))
        for arrays, loop in ((residuals, loop_residuals), (entries, loop_ledger)):
            found, expected = arrays(model, run.initial, solves), [loop(model, row) for row in rows]
            assert list(found) == list(expected[0])
            for name, values in found.items():
                wanted = np.array([e[name] for e in expected])
                # energies are differences of energies of some 10 J
                scale = 30.0 if arrays is entries else 1.0
                # a pose over the length of a short part, which leads to an impact, is rounded the more
                shortest = np.where(solves.table["h"] == 0, 1.0, np.abs(solves.table["h"])).min()
                atol = max(2e-13 * scale, 1e-15 / shortest)
                np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=atol, err_msg=name)
    closed = np.unique(run.solves.contacts["solve"])
    assert min(np.median(v[closed]) for v in residuals(model, run.initial, shaken(run)).values()) > 1e-3


def test_scenes_have_every_branch() -> None:
    """Among the runs compared: all stages and forms, sticking and sliding, impacts, a backward solve."""
    runs = [ran(make, stepper).solves for make, stepper in CASES]
    rows = np.concatenate([s.contacts[["stage", "impact", "lagged", "slid"]] for s in runs])
    assert set(rows["stage"]) >= {EULER, POSITION, VELOCITY}
    bounced = ran(disc, "implicit-euler").solves
    assert set(bounced.table["form"]) == {"euler"}
    assert VELOCITY in bounced.contacts["stage"]
    for name in ("impact", "lagged", "slid"):
        assert set(rows[name]) == {True, False}, name
    assert any(np.any(s.table["h"] < 0) for s in runs)
    assert all(len(set(ran(stack, stepper).solves.contacts["pair"])) == 3 for stepper in IMPLICIT)


@pytest.mark.parametrize(("make", "stepper"), CASES)
def test_rows_do_not_depend_on_each_other(make: Callable[[], Scene], stepper: str) -> None:
    """A solve has the same residuals and entries alone and among others, to the last bit."""
    run = ran(make, stepper)
    model, solves = Model(run.scene), run.solves
    path = solves.path(run.initial)
    for arrays in (residuals, entries):
        whole = arrays(model, run.initial, solves)
        for first, last in [(i, i + 1) for i in range(len(solves))] + [(3, 8), (5, len(solves))]:
            start = replace(run.initial, x=path.x[first], q=path.q[first], v=path.v[first], w=path.w[first])
            alone = arrays(model, start, solves.part(first, last))
            for name, values in whole.items():
                assert alone[name].tobytes() == values[first:last].tobytes(), (name, first, last)


@pytest.mark.parametrize(("make", "stepper"), CASES)
def test_one_solve_alone(make: Callable[[], Scene], stepper: str) -> None:
    """`step_ledger` and `step_residuals` of one solve are its rows; `solve_arrays` loses nothing."""
    run = ran(make, stepper)
    model = Model(run.scene)
    for solves in (run.solves, shaken(run)):
        rows = list(each_solve(run.initial, solves))
        ledger, checked = entries(model, run.initial, solves), residuals(model, run.initial, solves)
        for i, row in enumerate(rows):
            for name, values in ledger.items():
                assert abs(getattr(step_ledger(model, row), name) - values[i]) < 1e-12 * 30, name
            for name, value in step_residuals(model, row).items():
                assert value == checked[name][i], name
        again = solve_arrays(model, rows)
        assert again.contacts.tobytes() == solves.contacts.tobytes()
        assert again.half.tobytes() == solves.half.tobytes()
        for name in ("time", "h", "form"):
            assert np.array_equal(again.table[name], solves.table[name])


def test_loads_are_asked_once_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constant loads are evaluated once for a whole run, functions of time once for each distinct time."""
    asked: list[float] = []
    loads = Model.loads

    def counted(self: Model, time: float) -> np.ndarray:
        asked.append(time)
        return loads(self, time)

    for make, stepper in CASES:
        run = ran(make, stepper)
        model, table = Model(run.scene), run.solves.table
        late = (table["time"] + table["h"])[table["form"] == "rattle"]
        with monkeypatch.context() as patch:
            patch.setattr(Model, "loads", counted)
            for arrays in (residuals, entries):
                asked.clear()
                arrays(model, run.initial, run.solves)
                times = {*table["time"].tolist(), *late.tolist()}
                assert sorted(asked) == ([0.0] if run.scene.constant_loads else sorted(times))


def test_no_solves_no_rows() -> None:
    """A run without solves has no rows, and one without contacts has zeros for them."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("body", shapes.sphere(0.1), mass=1.0, angular_velocity=(1, 2, 3))
    run = simulate(scene, duration=0.03, step=0.01, progress=False)
    model = Model(scene)
    for arrays in (residuals, entries):
        nothing = arrays(model, run.initial, SolveArrays.empty(run.initial))
        assert all(values.shape == (0,) for values in nothing.values())
        flight = arrays(model, run.initial, run.solves)
        assert all(np.all(np.abs(v) < 1e-12) for name, v in flight.items() if name != "change")


def test_stage_one_without_its_end_is_not_accepted() -> None:
    """Stage 1's friction needs the normal of stage 2: where that record is missing it is not accepted."""
    run = ran(egg, "implicit-rattle")
    rows = run.solves.contacts
    mean = rows["solve"][(rows["stage"] == POSITION) & ~rows["lagged"]]
    last = rows["stage"] == VELOCITY
    for missing in (last, last & (rows["solve"] == mean[0]), last & (rows["solve"] == mean[-1])):
        left = replace(run.solves, contacts=rows[~missing])
        found = residuals(Model(run.scene), run.initial, left)["friction"]
        expected = set(mean) & set(rows["solve"][missing])
        assert set(np.flatnonzero(np.isinf(found))) == expected
        assert expected
