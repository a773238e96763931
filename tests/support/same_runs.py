"""Two runs are the same, bit for bit."""

from __future__ import annotations

from implicit_geom import Trajectory


def assert_identical(a: Trajectory, b: Trajectory) -> None:
    """Every recorded number is the same, apart from the wall time."""
    assert a.time.tobytes() == b.time.tobytes()
    for part in ("x", "q", "v", "w", "half"):
        assert getattr(a.solves, part).tobytes() == getattr(b.solves, part).tobytes()
    assert a.solves.table.tobytes() == b.solves.table.tobytes()
    assert a.solves.contacts.tobytes() == b.solves.contacts.tobytes()
    for name in set(a.steps.dtype.names or ()) - {"wall_time"}:
        assert a.steps[name].tobytes() == b.steps[name].tobytes(), name
    assert a.memory == b.memory
    assert a.options == b.options
