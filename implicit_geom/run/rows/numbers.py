"""Rows of a batch as arrays, where all that moves is one quadric over fixed half-spaces.

No scene is made for such a row: what varies is written over the numbers of the first row, which is set up as
any scene is. Where a value may be wrong, or a row has another structure, there are none (`row_numbers`), and
every row is set up by itself, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from implicit_geom.geometry.over_planes import (
    MovingBody,
    OverPlanes,
    geometric_mean,
    length_of,
    only_over_planes,
    semi_axes,
)
from implicit_geom.interface.choices import QUATERNION
from implicit_geom.interface.numbers import LARGEST
from implicit_geom.model.energy import smallest_height
from implicit_geom.model.model import Model, State, reach_of
from implicit_geom.model.pieces import thickness_of
from implicit_geom.model.solve_arrays import PARTS
from implicit_geom.rotation import unit
from implicit_geom.run.initial_state import OVERLAP
from implicit_geom.scene.limits import FAR, SMALLEST
from implicit_geom.scene.values import Variants
from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.shape import Shape

STARTS = dict(zip(("position", "orientation", "velocity", "angular_velocity"), PARTS, strict=True))
LAW = ("mu", "e_t", "e_o", "e_r", "restitution")


class Unusual(Exception):
    """The rows are better set up one by one."""


@dataclass(frozen=True)
class RowNumbers:
    """What differs from row to row.

    solver    the stepper of the first row, and the state it starts from
    body      the states and sizes, see `MovingBody`
    mass      (n,) kg
    inertia   (n, s, s)
    shapes    (n,) the moving body's
    lowest    (n,) m, see `EnergyScale`
    load      (n, dim + spins) force and torque, gravity included
    laws      mu, e_t, ... each (n, P), by pair
    over      gaps and closest points at the start
    """

    solver: Any
    start: State
    body: MovingBody
    mass: np.ndarray
    inertia: np.ndarray
    shapes: list[Shape]
    lowest: np.ndarray
    load: np.ndarray
    laws: dict[str, np.ndarray]
    over: OverPlanes
    _images: dict[tuple[int, ...], list[np.ndarray]] = field(default_factory=dict)

    def load_into(self, engine: Any, rows: np.ndarray) -> None:
        """Give the lanes of an engine these rows (lanes,): numbers of the first row, their own over them."""
        engine.load_all(self.solver, self.start)
        key = tuple(engine.order)
        if key not in self._images:
            self._images[key] = self._made(engine)
        b = int(engine.model.moving[0])
        arrays = [engine.bodies.constants[b], engine.bodies.state[b]]
        arrays += [
            own[i] for g in engine.groups for own in (g.constants, g.warm) for i in range(len(g.members))
        ]
        for own, image in zip(arrays, self._images[key], strict=True):
            own[:] = image[:, rows]
        engine.bodies.next[b] = engine.bodies.state[b]

    def _made(self, engine: Any) -> list[np.ndarray]:
        """What the arrays of an engine hold of all rows, (numbers, n) each."""
        from implicit_geom.compiled.memory.bodies import inverse_root

        b, n = int(engine.model.moving[0]), len(self.mass)
        values = {
            "mass": self.mass,
            "inverse_mass": 1 / self.mass,
            "inertia": _flat(self.inertia),
            "inverse_inertia": _flat(np.linalg.inv(self.inertia)),
            "root": _flat(inverse_root(self.mass, self.inertia)),
            "size": self.body.length,
            "reach": self.body.reach,
            "load": self.load,
        }
        if self.solver.guard is not None:
            values["depth"] = self.body.length
            values["lowest"] = np.where(np.isfinite(self.lowest), self.lowest, 0.0)
        moving = {part: getattr(self.body, part) for part in PARTS}
        images = [
            _written(engine.bodies.constants[b], engine.bodies.constant_struct.at, values),
            _written(engine.bodies.state[b], engine.bodies.state_struct.at, moving),
        ]
        for g in engine.groups:
            at = g.functions.constants.at
            images += [_written(g.constants[i], at, self._constants(g, c)) for i, c in enumerate(g.members)]
            for i, c in enumerate(g.members):
                warm = {
                    "u": self.over.unknowns(engine.model, c),
                    "direction": np.tile(self.over.direction(engine.model, c), (n, 1)),
                    "m_c": np.ones(n),
                    "h": np.ones(n),
                    "n": np.tile(self.over.n[c], (n, 1)),
                }
                images.append(_written(g.warm[i], g.functions.warm.at, warm))
        return images

    def _constants(self, group: Any, pair: int) -> dict[str, np.ndarray]:
        law = {name: self.laws[name][:, pair] for name in LAW}
        found = {
            "L": self.body.length,
            "mu": law["mu"],
            "com2": self.body.com,
            "theta2": self._of_shapes(lambda shape: shape.values),
            "thin": self._of_shapes(thickness_of),
            "multiplier_factor": 1 / geometric_mean(self.body.axes),
        }
        if group.kind.components:
            found["e"] = np.stack([law[f"e_{name}"] for name in group.kind.components], axis=-1)
        if not group.events:
            found["restitution"] = law["restitution"]
        return found

    def _of_shapes(self, what: Callable[[Shape], Any]) -> np.ndarray:
        """(n, ...); of shapes that are the same object it is asked for once."""
        known: dict[int, Any] = {}
        for shape in self.shapes:
            if id(shape) not in known:
                known[id(shape)] = what(shape)
        return np.array([known[id(shape)] for shape in self.shapes])


def row_numbers(variants: Variants, solver: Any, step: float) -> RowNumbers | None:
    """The rows, where nothing is out of the ordinary; `solver` is the stepper of the first one."""
    if not only_over_planes(solver.model):
        return None
    try:
        return _row_numbers(variants, solver, step)
    except (Unusual, ShapeError):
        return None


def _row_numbers(variants: Variants, solver: Any, step: float) -> RowNumbers:
    model: Model = solver.model
    scale = None if solver.guard is None else solver.guard.scale
    n, b = len(variants), int(model.moving[0])
    name, state = model.names[b], model.initial_state()
    given: dict[str, np.ndarray] = {}
    sizes: dict[str, np.ndarray] = {}
    laws: dict[str, np.ndarray] = {}
    for path, rows in variants.lists.items():
        parts = path.split(".")
        if parts[:2] == ["bodies", name] and len(parts) == 3 and parts[2] in ("mass", *STARTS):
            given[parts[2]] = _numbers(rows)
        elif parts[:3] == ["bodies", name, "shape"] and len(parts) == 4:
            sizes[parts[3]] = _numbers(rows)
        elif parts[0] == "friction" and parts[1:] and parts[1] in LAW:
            laws[parts[1]] = _numbers(rows)
        else:
            raise Unusual
    states = {part: _rows(given.get(label), getattr(state, part)[b], n) for label, part in STARTS.items()}
    if model.dim == 3 and "orientation" in given:
        if np.any(np.abs(length_of(states["q"]) - 1) > QUATERNION / 2):
            raise Unusual
        states["q"] = np.array([unit(q) for q in states["q"]])
    mass = _rows(given.get("mass"), model.mass[b], n)
    if np.any(mass < SMALLEST):
        raise Unusual
    shapes = _shapes(model.bodies[b].shape, sizes, n)
    table = variants.plain["bodies"][name]
    follows = "inertia" not in table and bool(sizes or "mass" in given)
    inertia = [model.inertia[b]] * n
    if follows:
        inertia = [
            np.atleast_2d(s.inertia(m)).astype(float) for s, m in zip(shapes, mass.tolist(), strict=True)
        ]
    com = np.array([s.com if "com" not in table else model.com[b] for s in shapes])
    load = model.loads(0.0)[b] + np.zeros((n, 1))
    if "mass" in given:
        force, _ = model.scene.load(name, 0.0)
        load[:, : model.dim] = force + mass[:, None] * model.scene.gravity
    kinds = shapes if sizes else shapes[:1]  # (of one shape everything is asked for once)

    def of_shapes(values: list[Any]) -> np.ndarray:
        return np.array(values) if sizes else np.repeat(np.array(values), n, axis=0)

    length = of_shapes([s.size for s in kinds])
    lowest = np.full(n, np.nan if scale is None else scale.lowest[b])
    if sizes and scale is not None and np.isfinite(scale.lowest[b]):
        lowest = np.array([scale.floor + smallest_height(s, c) for s, c in zip(shapes, com, strict=True)])
    body = MovingBody(
        **states,
        com=com,
        axes=of_shapes([semi_axes(s) for s in kinds]),
        length=length,
        reach=of_shapes([reach_of(s, c) for s, c in zip(kinds, com)]),
        pull=length_of(load[:, : model.dim]) / mass,
    )
    _check_scales(body, model, step)
    over = OverPlanes.of(model, state, body)
    if np.any(over.gap < -OVERLAP / 2 * length[:, None]):
        raise Unusual
    return RowNumbers(
        solver, state, body, mass, np.array(inertia), shapes, lowest, load, _laws(model, laws, n), over
    )


def _numbers(rows: list[Any]) -> np.ndarray:
    """Finite numbers of ordinary size."""
    if not _plain(rows):
        raise Unusual
    try:
        found = np.array(rows)
    except ValueError:
        raise Unusual from None
    if found.dtype.kind not in "fiu" or not np.all(np.abs(found) <= LARGEST):
        raise Unusual
    return found.astype(float)


def _plain(rows: Any) -> bool:
    """Whether lists hold nothing but numbers; a truth is none."""
    if isinstance(rows, list):
        return all(map(_plain, rows))
    return type(rows) in (int, float)


def _rows(given: np.ndarray | None, first: np.ndarray, n: int) -> np.ndarray:
    """(n, ...) as many rows of the first one's shape."""
    if given is None:
        return np.repeat(np.asarray(first)[None], n, axis=0)
    plain = (n,) if np.shape(first) == (1,) else (n, *np.shape(first))  # (of a spin in the plane one number)
    if given.shape != plain:
        raise Unusual
    return given.reshape(n, *np.shape(first))


def _shapes(first: Shape, sizes: dict[str, np.ndarray], n: int) -> list[Shape]:
    if not sizes:
        return [first] * n
    if not set(sizes) <= set(first.parameters) or any(values.shape != (n,) for values in sizes.values()):
        raise Unusual
    rows = zip(*(values.tolist() for values in sizes.values()), strict=True)
    return [type(first)(**{**first.parameters, **dict(zip(sizes, row, strict=True))}) for row in rows]


def _laws(model: Model, given: dict[str, np.ndarray], n: int) -> dict[str, np.ndarray]:
    """(n, P) each; the structure of every row must be that of the first."""
    for name, values in given.items():
        most = 1.0 if name == "restitution" else LARGEST
        if values.shape != (n,) or np.any((values < 0) | (values > most)):
            raise Unusual
    P = len(model.pairs)
    out = {name: np.zeros((n, P)) for name in LAW}
    for c, pair in enumerate(model.pairs):
        names = frozenset(model.names[b] for b in (pair.first, pair.second))
        own = model.scene._pair_friction.get(names, {})
        for name in LAW:
            default = getattr(pair.law, name)
            out[name][:, c] = given[name] if name in given and name not in own else default
    kept = {name: (out[name] > 0) & (out["mu"] > 0) for name in ("e_t", "e_o", "e_r")}
    kept["isotropic"] = out["e_t"] == out["e_o"]
    if any(np.any(found != found[:1]) for found in kept.values()):
        raise Unusual
    return out


def _check_scales(body: MovingBody, model: Model, step: float) -> None:
    """As `check_scales`: what is far beyond ordinary is looked at row by row."""
    speed = length_of(body.v) + np.linalg.norm(model.scene.gravity) * step
    turned = length_of(body.w) * step
    if np.any((length_of(body.x) > FAR / 2 * body.length) | (speed * step > FAR / 2 * body.length)):
        raise Unusual
    if np.any(turned > FAR / 2):
        raise Unusual


def _flat(J: np.ndarray) -> np.ndarray:
    """(n, s^2) column by column."""
    return np.swapaxes(J, 1, 2).reshape(len(J), -1)


def _written(own: np.ndarray, at: dict[str, slice], values: dict[str, np.ndarray]) -> np.ndarray:
    """(numbers, n) of a struct (numbers, lanes): what its first lane holds, and fields from rows (n, ...)."""
    out = np.repeat(own[:, :1], len(next(iter(values.values()))), axis=1)
    for name, rows in values.items():
        out[at[name]] = rows.reshape(len(rows), -1).T
    return out
