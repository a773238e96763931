"""Packed arrays come back to the last bit, and take the room of what changes."""

from __future__ import annotations

import numpy as np
import pytest

from implicit_geom import Scene, simulate
from implicit_geom.model.solve_arrays import BLOCK, STEP, contact_dtype
from implicit_geom.run.record.packing import SHORT, Packed
from implicit_geom.run.record.solve_log import ARRAYS, SolveLog
from implicit_geom.run.record.step_log import StepLog


def contacts(rows: int) -> np.ndarray:
    """Contacts with every kind of column: changing or not, NaN, -0, flags, whole numbers of any size."""
    rng = np.random.default_rng(5)
    out = np.zeros(rows, contact_dtype(3))
    out["solve"], out["stage"] = np.arange(rows) // 2, np.arange(rows) % 2
    out["feature"] = rng.choice([np.iinfo(np.int64).min, np.iinfo(np.int64).max], rows)
    out["pair"] = rng.integers(-(2**40), 2**40, rows)
    out["point"], out["normal"], out["gap"] = rng.normal(size=(rows, 3)), (0, 0, 1), np.nan
    out["p_t"] = rng.choice([0.0, -0.0], rows)
    out["impact"] = rng.random(rows) < 0.5
    return out


@pytest.mark.parametrize("rows", [0, 1, 2, 300, SHORT + 1])
def test_structured_arrays_come_back(rows: int) -> None:
    table = contacts(rows)
    packed = Packed(table)
    assert packed.unpack().dtype == table.dtype
    assert packed.unpack().tobytes() == table.tobytes()
    assert packed.unpack(slice(1, 7)).tobytes() == table[1:7].tobytes()
    assert packed.column("point").tobytes() == table["point"].tobytes()


def test_texts_come_back_as_texts() -> None:
    steps = np.zeros(2 * SHORT, STEP)
    steps["status"] = np.random.default_rng(0).choice(["converged", "failed", "substepped"], len(steps))
    back = Packed(steps).unpack()
    assert back.tobytes() == steps.tobytes()
    assert np.array_equal(back["status"] == "failed", steps["status"] == "failed")


def test_one_body_of_many() -> None:
    """array[:, i] without the others; fixed bodies take no room."""
    states = np.random.default_rng(1).normal(size=(2 * SHORT, 3, 4))
    states[:, 1] = (1, 0, 0, 0)
    packed = Packed(states)
    assert packed.nbytes < len(states) * 2 * 4 * 8 + 200
    for i in range(3):
        assert packed.one(i).tobytes() == states[:, i].tobytes()
        assert packed.one(i, np.array([7, 3])).tobytes() == states[[7, 3], i].tobytes()


def test_what_does_not_change_takes_no_room() -> None:
    table = np.zeros(2 * SHORT, contact_dtype(3))
    assert Packed(table).nbytes < 600


def test_short_arrays_stay_as_they_are() -> None:
    """What is read of one is a copy: nothing that is done to it reaches the log."""
    table = contacts(20)
    packed = Packed(table)
    for taken in (packed.unpack(), packed.unpack(slice(3, 9)), packed.column("gap"), packed.column("p_t")):
        assert not np.shares_memory(taken, table)
    states = np.random.default_rng(1).normal(size=(20, 3, 4))
    assert Packed(states).one(1, np.array([7, 3])).tobytes() == states[[7, 3], 1].tobytes()


def test_logs_in_many_blocks(eggs: Scene) -> None:
    """However a run is cut into blocks, it reads the same; a step is never cut."""
    run = simulate(eggs, duration=0.4, step=0.01, progress=False)
    solves, steps = run.solves, run.steps
    assert len(solves) < BLOCK
    log, table = SolveLog.of(solves, block=7), StepLog.of(steps, len(steps), block=7)
    assert sum(1 for _ in log.blocks()) > 4
    for name in ARRAYS:
        assert getattr(log, name).tobytes() == getattr(solves, name).tobytes()
        for first, last in ((0, 3), (5, 20), (13, 14), (9, 9), (0, len(log))):
            ours, theirs = log.part(first, last), solves.part(first, last)
            assert getattr(ours, name).tobytes() == getattr(theirs, name).tobytes()
    for i in (0, 10, len(log) - 1):
        assert log.end(i).x.tobytes() == solves.end(i).x.tobytes()
        assert log.end(i).time == solves.end(i).time
    assert table.rows().tobytes() == steps.tobytes()
    last = table.pop()
    assert last.tobytes() == steps[-1:].tobytes()
    assert table.rows().tobytes() == steps[:-1].tobytes()
    taken = log.pop(len(steps) - 1)
    assert len(log) + len(taken) == len(solves)
    assert taken.x.tobytes() == solves.x[len(log) :].tobytes()
