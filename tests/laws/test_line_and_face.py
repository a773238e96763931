"""Bodies that touch along lines and faces under `implicit-rattle`: landing, coming to rest, continuing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from law_scenes import assert_at_rest, on_ground, turned

from implicit_geom import Scene, Trajectory, shapes, simulate
from implicit_geom.model.records import POSITION
from implicit_geom.rotation import rotational_velocity

LANDINGS: dict[str, tuple[Any, dict[str, Any], float]] = {
    # shape, start, duration: cylinder and cone wobble on their rims until the torsional friction has stopped
    # them, at 3.5 s and 8 s at all of h = 0.01, 0.002 and 0.0005
    "box": (
        shapes.box(0.2, 0.15, 0.1),
        {"position": (0, 0, 0.35), "orientation": turned((1, 2, 0.3), 20), "velocity": (0.4, 0, 0)},
        1.2,
    ),
    "cylinder": (
        shapes.cylinder(0.2, 0.2),
        {"position": (0, 0, 0.3), "orientation": turned((1, 0.3, 0), 15), "velocity": (0.2, 0, 0)},
        4.0,
    ),
    "cone": (
        shapes.cone(0.25, 0.3),
        {"position": (0, 0, 0.3), "orientation": turned((1, 0.2, 0), 25), "velocity": (0.3, 0.1, 0)},
        9.0,
    ),
    "capsule": (
        shapes.capsule(0.1, 0.4),
        {"position": (0, 0, 0.4), "orientation": turned((1, 0, 0), 70), "velocity": (0, 0.3, 0)},
        1.2,
    ),
}


def landing(name: str) -> Scene:
    if name == "polygon":
        scene = Scene(dim=2, gravity=(0, -9.81))
        scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
        polygon = shapes.polygon([(-0.3, -0.2), (0.3, -0.2), (0.25, 0.2), (-0.1, 0.3)])
        scene.add("body", polygon, mass=1.0, position=(0, 0.5), orientation=0.4, velocity=(0.5, 0))
    else:
        shape, start, _ = LANDINGS[name]
        scene = on_ground(shape, **start)
    scene.friction(mu=0.5, e_r=0.0 if name == "polygon" else 0.02)
    return scene


def approach(run: Trajectory) -> np.ndarray:
    """The largest approach of a closed contact at the end of every step, m/s."""
    solves, steps = run.solves, run.solves.table["step"]
    worst = np.zeros(len(run.good_steps))
    last = np.searchsorted(steps, np.arange(len(worst)), side="right") - 1
    rows = solves.contacts[solves.contacts["stage"] != POSITION]
    rows = rows[rows["solve"] == last[steps[rows["solve"]]]]
    at = rows["solve"]
    first, second = (
        solves.v[at, body] + rotational_velocity(solves.w[at, body], rows["point"] - solves.x[at, body])
        for body in (rows["first"], rows["second"])
    )
    np.maximum.at(worst, steps[at], -np.sum(rows["normal"] * (second - first), axis=1))
    return worst


@pytest.mark.parametrize("name", [*LANDINGS, "polygon"])
def test_lands_and_comes_to_rest(name: str) -> None:
    """No step fails, nothing penetrates, no closed contact approaches at a step's end, at rest at last."""
    duration = LANDINGS[name][2] if name in LANDINGS else 1.2
    run = simulate(landing(name), duration=duration, step=0.01, progress=False)
    assert not run.failed
    assert run.max_penetration < 1e-10
    rattle = run.steps["form"] != "euler"
    assert np.mean(rattle) > 0.8
    assert max(run.steps[k].max() for k in ("dynamics", "gap", "complementarity")) < 1e-9
    assert np.max(approach(run)[rattle]) < 1e-9
    assert np.max(np.diff(run.energy)) < 1e-3 * run.energy[0]
    assert np.all(run.steps["contacts"][-10:] == 1)
    assert_at_rest(run)


def assert_identical(a: Trajectory, b: Trajectory) -> None:
    """Every recorded number is the same, apart from the wall time."""
    assert a.time.tobytes() == b.time.tobytes()
    for part in ("x", "q", "v", "w", "half"):
        assert getattr(a.solves, part).tobytes() == getattr(b.solves, part).tobytes(), part
    assert a.solves.table.tobytes() == b.solves.table.tobytes()
    assert a.solves.contacts.tobytes() == b.solves.contacts.tobytes()
    for name in set(a.steps.dtype.names or ()) - {"wall_time"}:
        assert a.steps[name].tobytes() == b.steps[name].tobytes(), name
    assert a.memory == b.memory


@pytest.mark.parametrize(
    ("name", "stepper"),
    [
        ("box", "implicit-rattle"),
        ("cylinder", "implicit-rattle"),
        ("polygon", "implicit-rattle"),
        ("polygon", "implicit-rattle-4"),
        ("cone", "implicit-rattle-4"),
    ],
)
def test_saved_and_continued_equals_unbroken(name: str, stepper: str, tmp_path: Path) -> None:
    """Saved while landing and resumed: the unbroken run, bit for bit; broken after the impact, and later."""
    whole = simulate(landing(name), duration=0.32, step=0.01, stepper=stepper, progress=False)
    first = int(np.flatnonzero(whole.steps["contacts"])[0])
    assert first < 26
    for steps in (first + 1, first + 4):
        simulate(landing(name), duration=steps * 0.01, step=0.01, stepper=stepper, progress=False).save(
            tmp_path / f"{steps}.h5"
        )
        part = Trajectory.load(tmp_path / f"{steps}.h5")
        assert_identical(whole, part.resume(duration=(32 - steps) * 0.01))
