"""A run from the arrays of a file, of which nothing is believed: types, shapes, sizes, numbers.

What is checked is what the rest of the program relies on: that rows of one table are as many as those of
another, that numbers of steps, solves and bodies exist, that states are finite and quaternions turn.
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.interface.strict_json import finite, read_json
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import IMPACT
from implicit_geom.model.solve_arrays import (
    ASSESSED,
    PARTS,
    SOLVE,
    STATUSES,
    STEP,
    SolveArrays,
    contact_dtype,
)
from implicit_geom.run.record.call_account import Call, calls_of
from implicit_geom.run.recorded_run import RecordedRun
from implicit_geom.run.storage.run_file import Damaged, Parts
from implicit_geom.run.storage.solver_state import check_plain
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.scene_file import read_scene
from implicit_geom.shapes.errors import ShapeError

R = TypeVar("R", bound=RecordedRun)
TEXTS = ("scene", "options", "memory")
LATER_TEXTS = ("calls",)  # that older files lack
GROUPS = ("initial", "solves", "contacts", "steps")
MOTION = dict(zip(("position", "orientation", "velocity", "angular_velocity"), PARTS, strict=True))
UNIT = 1e-6  # by how much the length of a quaternion may differ from one
# columns that every file has; others of today's tables came later, and get `DEFAULTS` where they are missing
FIRST = {
    "steps": ("time", "step", "iterations", "status", "form", "guard", "solves", "contacts", "residual")
    + ("dynamics", "gap", "complementarity", "friction")
    + ("work_energy", "friction_energy", "impact_energy", "remainder_energy", "wall_time"),
    "solves": ("step", "time", "h", "form", "iterations", "status", "residual"),
    "contacts": ("solve", "pair", "feature", "first", "second", "stage", "impact", "lagged", "slid")
    + ("point", "normal", "tangent", "binormal", "end_point", "gap_point", "gap_normal")
    + ("gap", "start_gap", "bounce", "p_n", "p_t", "p_o", "p_r", "v_t", "v_o", "v_r"),
}
DEFAULTS: dict[str, Any] = {"f": np.nan, "i": 0, "b": False, "U": ""}
DEFAULTS |= dict.fromkeys(("approach", "c_n", "c_t", "c_o", "c_r"), 0.0)


def run_of(parts: Parts, make: type[R]) -> R:
    """The run, made by `make`; Damaged says in one line what is wrong."""
    with np.errstate(all="ignore"):  # numbers that overflow are found to be wrong
        return _run(parts, make)


def _run(parts: Parts, make: type[R]) -> R:
    texts = {name: _text(parts, name) for name in TEXTS}
    scene = _scene(texts["scene"])
    options = _options(texts["options"])
    try:
        check_plain(texts["memory"])
    except ValueError as error:
        raise Damaged(f"memory: {error}") from None
    time, failure = parts.notes.get("time"), parts.notes.get("failure")
    if not isinstance(time, float | int) or not math.isfinite(time):
        raise Damaged(f"the time of its start, {time!r}, is no number")
    if not isinstance(failure, str) or not failure.isprintable():
        raise Damaged("the reason of its failure is no line of text")
    initial = State(float(time), *(_floats(parts, f"initial/{part}", _shape(scene, part)) for part in PARTS))
    for name in parts.arrays:
        if name.startswith("initial/") and name.removeprefix("initial/") not in PARTS:
            raise Damaged(f"{name!r} is not known")
    steps = _steps(parts)
    solves = _solves(parts, scene)
    _check_steps(steps, solves)
    _check_contacts(solves, scene)
    for q in (initial.q, solves.q):
        if scene.dim == 3 and not unit(q):
            raise Damaged("a quaternion has not the length 1")
    known = len(steps) if all(f"steps/{name}" in parts.arrays for name in ASSESSED) else 0
    calls = _calls(_text(parts, "calls")) if "calls" in parts.arrays else None
    memory = texts["memory"]
    run = make(scene, options, initial, solves, steps, memory, failure, assessed=known, calls=calls)
    _check_motion(parts, run)
    return run


def unit(q: np.ndarray) -> bool:
    """Whether all quaternions have the length one."""
    with np.errstate(all="ignore"):
        return bool(np.all(np.abs(np.linalg.norm(q, axis=-1) - 1) <= UNIT))


def _text(parts: Parts, name: str) -> Any:
    array = _member(parts, name)
    if array.dtype.kind != "S" or array.shape != ():
        raise Damaged(f"{name} is no text")
    try:
        return read_json(array.item())
    except ValueError as error:
        raise Damaged(f"{name} is no JSON: {error}") from None


def _scene(plain: Any) -> Scene:
    if not isinstance(plain, dict):
        raise Damaged("scene is no table")
    try:
        return read_scene(finite(plain, "scene"))[0]
    except (SceneError, ShapeError) as error:
        raise Damaged(f"scene: {error}") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Damaged(f"scene: {type(error).__name__}: {error}") from None


def _options(plain: Any) -> SimulationOptions:
    try:
        return SimulationOptions(**finite(plain, "options"))
    except (ValueError, TypeError, ArithmeticError) as error:
        raise Damaged(f"options: {error}") from None


def _calls(plain: Any) -> list[Call]:
    try:
        return calls_of(finite(plain, "calls"))
    except ValueError as error:
        raise Damaged(f"calls: {error}") from None


def _shape(scene: Scene, part: str) -> tuple[int, ...]:
    """Of a part of the state of all bodies."""
    dim, count = scene.dim, len(scene.bodies)
    shapes: dict[str, tuple[int, ...]] = {"x": (dim,), "q": (4,), "v": (dim,), "w": (3,)}
    if dim == 2:
        shapes |= {"q": (), "w": (1,)}
    return (count, *shapes[part])


def _member(parts: Parts, name: str) -> np.ndarray:
    if name not in parts.arrays:
        raise Damaged(f"{name} is missing")
    return parts.arrays[name]


def _floats(parts: Parts, name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = _member(parts, name)
    if array.dtype != np.float64 or array.shape != shape:
        raise Damaged(f"{name} is {array.dtype} of the shape {array.shape}, where {shape} floats belong")
    if not np.all(np.isfinite(array)):
        raise Damaged(f"{name} holds numbers that are not finite")
    return array


def table_of(parts: Parts, group: str, dtype: np.dtype, also: tuple[str, ...] = ()) -> np.ndarray:
    """One structured array of a group's columns; `also` names what else the group holds."""
    columns = {
        name.split("/", 1)[1]: array
        for name, array in parts.arrays.items()
        if name.startswith(f"{group}/") and name.split("/", 1)[1] not in also
    }
    known = dtype.names or ()
    for name in columns:
        if name not in known:
            raise Damaged(
                f"{group} has a column {name!r} that this version does not know; update implicit-geom"
            )
    count = len(_column(parts, group, FIRST[group][0]))
    table = np.zeros(count, dtype)
    for name in known:
        if name not in columns and name not in FIRST[group]:
            table[name] = DEFAULTS.get(name, DEFAULTS[dtype[name].base.kind])
            continue
        column = _column(parts, group, name)
        if column.dtype.kind == "S":
            column = _decoded(column, f"{group}/{name}")
        wanted = dtype[name]
        same = column.dtype.kind == wanted.base.kind and column.dtype.itemsize <= wanted.base.itemsize
        if not same or column.shape != (count, *wanted.shape):
            raise Damaged(f"{group}/{name} is {column.dtype} of the shape {column.shape}, which does not fit")
        table[name] = column
    return table


def _column(parts: Parts, group: str, name: str) -> np.ndarray:
    column = _member(parts, f"{group}/{name}")
    if column.ndim == 0:
        raise Damaged(f"{group}/{name} is no column")
    return column


def _decoded(column: np.ndarray, name: str) -> np.ndarray:
    try:
        words = np.char.decode(column, "ascii")
    except UnicodeDecodeError:
        raise Damaged(f"{name} is no text") from None
    if not all(word.isprintable() for word in np.unique(words).tolist()):
        raise Damaged(f"{name} is no text")
    return words


def _steps(parts: Parts) -> np.ndarray:
    steps = table_of(parts, "steps", STEP)
    if not np.all(np.isin(steps["status"], STATUSES)):
        raise Damaged("steps/status holds something else than " + ", ".join(STATUSES))
    solved = steps["status"] != "failed"
    _all_finite(steps[["time", "step", "wall_time"]], "steps")
    if not np.all(np.diff(steps["time"]) > 0) or not np.all(steps["step"] > 0):
        raise Damaged("the times of its steps do not rise")
    if not np.all(solved[:-1]):
        raise Damaged("a step follows one that failed")
    return steps


def _solves(parts: Parts, scene: Scene) -> SolveArrays:
    table = table_of(parts, "solves", SOLVE, (*PARTS, "half", "bodies"))
    _all_finite(table[["time", "h"]], "solves")
    if not np.array_equal(table["h"] == 0, table["form"] == "impact"):
        raise Damaged("solves/h is zero elsewhere than in impacts")
    count, bodies, dim = len(table), len(scene.bodies), scene.dim
    states = {part: _floats(parts, f"solves/{part}", (count, *_shape(scene, part))) for part in PARTS}
    half = _floats(parts, "solves/half", (count, bodies, dim + (3 if dim == 3 else 1)))
    moved = parts.arrays.get("solves/bodies", np.ones((count, bodies), bool))  # (older files lack it)
    if moved.dtype != bool or moved.shape != (count, bodies):
        raise Damaged(f"solves/bodies is {moved.dtype} of the shape {moved.shape}, which does not fit")
    contacts = table_of(parts, "contacts", contact_dtype(dim))
    _all_finite(contacts, "contacts")
    return SolveArrays(table=table, half=half, bodies=moved, contacts=contacts, **states)


def _all_finite(table: np.ndarray, group: str) -> None:
    for name in table.dtype.names or ():
        if table[name].dtype.kind == "f" and not np.all(np.isfinite(table[name])):
            raise Damaged(f"{group}/{name} holds numbers that are not finite")


def _check_steps(steps: np.ndarray, solves: SolveArrays) -> None:
    """Every step that was solved has its solves, in order."""
    number, good = solves.table["step"], int(np.sum(steps["status"] != "failed"))
    inside = np.all((number >= 0) & (number < good)) and np.all(np.diff(number) >= 0)
    if not inside or not np.array_equal(np.bincount(number, minlength=good), steps["solves"][:good]):
        raise Damaged("its solves do not belong to its steps")


def _check_contacts(solves: SolveArrays, scene: Scene) -> None:
    """Contacts are those of solves, bodies and pairs that exist."""
    c, bodies = solves.contacts, len(scene.bodies)
    if not np.all((c["solve"] >= 0) & (c["solve"] < len(solves))) or not np.all(np.diff(c["solve"]) >= 0):
        raise Damaged("its contacts do not belong to its solves")
    if not np.array_equal(c["stage"] == IMPACT, solves.table["form"][c["solve"]] == "impact"):
        raise Damaged("contacts of impacts and solves that are impacts do not belong together")
    if not np.all((c["first"] >= 0) & (c["first"] < c["second"]) & (c["second"] < bodies)):
        raise Damaged("its contacts do not belong to its bodies")
    if not len(c):
        return
    pairs = Model(scene, "projection").pairs
    known = (c["pair"] >= 0) & (c["pair"] < len(pairs))
    bodies_of = [c["first"], c["second"]]
    if not np.all(known) or not np.array_equal(np.sort(pairs.sides(c["pair"]), axis=0), bodies_of):
        raise Damaged("its contacts do not belong to its pairs")


def _check_motion(parts: Parts, run: RecordedRun) -> None:
    """The copy of the motion for other programs, where it was read, is that of the solves bit by bit."""
    if not any(name.startswith("motion/") for name in parts.arrays):
        return
    own = {"time": run.time, **{name: getattr(run.states, part) for name, part in MOTION.items()}}
    for name, array in own.items():
        if _member(parts, f"motion/{name}").tobytes() != array.tobytes():
            raise Damaged(f"motion/{name} is not what the solves say")
