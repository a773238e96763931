"""A model handed to the native engine, and its steps as arrays."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.engine.library import Foreign, address, library
from implicit_geom.engine.native_shapes import FOREIGN, NativeShape, native_shape
from implicit_geom.geometry.patch_points import patch_points
from implicit_geom.interface.errors import SimulationError
from implicit_geom.machine.availability import available
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.model import Model, State
from implicit_geom.model.placed_shape import PlacedShape
from implicit_geom.model.solve_arrays import SOLVE, SolveArrays, contact_dtype
from implicit_geom.process.signals import deferred

FORMS = ("euler", "rattle", "impact")
POINTS = 9000  # tag of the first point of a patch that Python finds
LARGEST = 4_000_000  # pairs


REASONS = (
    "",
    "many impacts in a step",
    "rounds did not settle",
    "gain of energy",
    "no instant of impact",
)


@dataclass(frozen=True)
class MarchOutput:
    """Steps that were taken: their solves as arrays, and how each step was taken.

    euler     (steps,) a part in the end-of-step form
    divided   (steps,) in more flights than its impacts asked for
    plain     (steps,) not in flights of order four alone
    why       (steps,) the first reason for either, a place in REASONS
    time      (steps,) wall time, s
    work      (steps, 2) rounds and factorisations, also of what was refused
    reason    why no more were taken, if so
    """

    solves: SolveArrays
    euler: np.ndarray
    divided: np.ndarray
    plain: np.ndarray
    why: np.ndarray
    time: np.ndarray
    work: np.ndarray
    reason: str

    def forms(self) -> np.ndarray:
        """(steps,) the plainest form of each step's parts, as `model.records.Attempt` has it."""
        return np.where(self.euler, "euler", np.where(self.plain, "rattle", "rattle-4"))


def why_not_native(model: Model) -> str:
    """Why the engine cannot step a scene, in few words; empty where it can."""
    if not available():
        return "switched off"
    if library() is None:
        return "installed without the native engine"
    if model.friction_residual != "projection":
        return "friction_residual"
    if not model.scene.constant_loads:
        return "loads are functions of time"
    if not all(model.bodies[b].shape.bounded for b in model.moving):
        return "an unbounded body moves"
    if model.pairs.have_seams:
        return "a union has seams"  # (which of two solutions is meant is up to the stepper)
    return "many pairs" if len(model.pairs) > LARGEST else ""


class NativeScene:
    """The engine's twin of a model."""

    def __init__(
        self,
        model: Model,
        guard: float,
        max_impacts: int,
        tolerance: float,
        fourth: bool = False,
        euler: bool = False,
    ) -> None:
        self.model, self.fourth, self.euler = model, fourth, euler
        found = library()
        assert found is not None
        self._library = found
        self._shapes = [native_shape(shape) for shape in model.pieces.shapes]
        B, dim = len(model.bodies), model.dim
        gravity = np.zeros(3)
        gravity[:dim] = model.scene.gravity
        moves = np.zeros(B, np.int8)
        moves[model.moving] = 1
        J = np.zeros((B, 3, 3))
        for b in model.moving:
            J[b] = model.inertia[b] if dim == 3 else np.eye(3) * float(model.inertia[b].ravel()[0])
        scale = EnergyScale(model)
        mass = np.where(moves, model.mass, 1.0)
        size = np.where(np.isfinite(model.size), model.size, 0.0)
        load = np.zeros((B, 6))
        loads = model.loads(0.0)
        load[:, :dim], load[:, 6 - model.spins :] = loads[:, :dim], loads[:, dim:]
        arrays = [np.ascontiguousarray(a, float) for a in (mass, J, size, scale.depth, scale.lowest, load)]
        handle = self._library.ig_scene(
            ctypes.c_int(dim),
            ctypes.c_int(B),
            address(gravity),
            *(address(a) for a in arrays),
            address(moves),
            ctypes.c_double(tolerance),
            ctypes.c_double(guard),
            ctypes.c_int(max_impacts),
            ctypes.c_int(fourth),
            ctypes.c_int(euler),
        )
        self._handle = ctypes.c_void_p(handle)
        weakref.finalize(self, self._library.ig_scene_free, self._handle)
        for k, shape in enumerate(self._shapes):
            self._piece(k, shape)
        self._laws()
        self._pairs()
        self._foreign = Foreign(self._ask)
        self._failure: BaseException | None = None
        self._signals: list[int] = []  # that came while native code runs
        self._library.ig_scene_foreign(self._handle, self._foreign)

    @property
    def knows_all(self) -> bool:
        """Whether it finds the closest points of every pair without asking."""
        return all(shape.kind != FOREIGN for shape in self._shapes)

    def _piece(self, k: int, s: NativeShape) -> None:
        model = self.model
        body, shape = int(model.pieces.owner[k]), model.pieces.shapes[k]
        com, centre, radius = np.zeros(3), np.zeros(3), -1.0
        if not model.bodies[body].fixed:
            com[: model.dim] = model.com[body]
        if shape.bounded:
            lower, upper = shape.bounds
            centre[: model.dim] = (lower + upper) / 2
            radius = float(np.linalg.norm(upper - lower)) / 2
        arrays = [np.ascontiguousarray(a, float) for a in (s.par, s.inside, s.o - com, s.R, centre - com)]
        par, inside, place, R, middle = arrays
        vertices, planes = np.ascontiguousarray(s.vertices), np.ascontiguousarray(s.planes)
        ring, start = np.ascontiguousarray(s.ring, np.int32), np.ascontiguousarray(s.start, np.int32)
        size = s.size if np.isfinite(s.size) else 0.0
        self._library.ig_scene_piece(
            self._handle,
            ctypes.c_int(body),
            ctypes.c_int(s.kind),
            address(par),
            ctypes.c_double(size),
            address(inside),
            address(place),
            address(R),
            address(middle),
            ctypes.c_double(radius),
            ctypes.c_int(len(vertices)),
            address(vertices),
            ctypes.c_int(len(planes)),
            address(planes),
            ctypes.c_int(len(ring)),
            address(ring),
            address(start),
        )

    def _laws(self) -> None:
        laws, names = self.model.pairs.laws, self.model.names
        numbers = np.zeros((len(laws), 8))
        directed, frame = np.zeros(len(laws), np.int32), np.full(len(laws), -1, np.int32)
        for k, law in enumerate(laws):
            numbers[k, :5] = law.mu, law.e_t, law.e_o, law.e_r, law.restitution
            if law.direction is not None:
                directed[k], numbers[k, 5 : 5 + self.model.dim] = 1, law.direction
            if law.frame is not None:
                frame[k] = names.index(law.frame)
        self._library.ig_scene_laws(
            self._handle, ctypes.c_int(len(laws)), address(numbers), address(directed), address(frame)
        )

    def _pairs(self) -> None:
        pairs, pieces = self.model.pairs, self.model.pieces
        numbers = np.arange(len(pairs))
        i, j = pairs.pieces(numbers)
        first, _ = pairs.ends(numbers)
        columns = (i, j, pieces.owner[i], pieces.owner[j], pairs.law_numbers(numbers), first != i)
        table = np.ascontiguousarray(np.column_stack(columns), np.int32)
        size = np.ascontiguousarray(np.minimum(pieces.size[i], pieces.size[j]))
        self._library.ig_scene_pairs(self._handle, ctypes.c_int(len(pairs)), address(table), address(size))

    def _ask(self, pair: int, x_a: Any, R_a: Any, x_b: Any, R_b: Any, out: Any) -> int:
        """The patch of a pair that the engine is not certain of; 0 where it is found."""
        if self._signals:  # (no more is found, and the march ends)
            return 1
        try:
            pieces = self.model.pairs.pieces(np.array([pair]))
            placed = [
                self._placed(int(piece[0]), np.array(x[:3]), np.array(R[:9]).reshape(3, 3))
                for piece, x, R in zip(pieces, (x_a, x_b), (R_a, R_b), strict=True)
            ]
            found = patch_points(placed[0], placed[1], np.inf)
        except SimulationError:
            return 1
        except BaseException as problem:  # (an exception must not pass through native code)
            self._failure = problem
            return 1
        patch, dim = out.contents, self.model.dim
        patch.count = min(len(found.gap), len(patch.gap))
        patch.n[:dim] = found.normal.tolist()
        patch.n[dim:] = [0.0] * (3 - dim)
        for k in range(patch.count):
            rows = ((patch.a, found.point_a[k]), (patch.b, found.point_b[k]), (patch.own, found.normal))
            for to, given in rows:
                to[3 * k : 3 * k + 3] = [*given.tolist(), *[0.0] * (3 - dim)]
            patch.gap[k] = float(found.gap[k])
            patch.tag[k] = 0 if patch.count == 1 else POINTS + k
            patch.fixed[k] = 0 if patch.count == 1 else 2
        return 0

    def _placed(self, piece: int, x: np.ndarray, R: np.ndarray) -> PlacedShape:
        """A piece whose primitive has the pose x, R."""
        own, dim = self._shapes[piece], self.model.dim
        turn = R @ own.R.T
        origin = x - turn @ own.o
        return PlacedShape(self.model.pieces.shapes[piece], origin[:dim], turn[:dim, :dim], np.zeros(dim))

    def march(self, state: State, h: float, ends: np.ndarray) -> MarchOutput:
        """Steps of length h that end at the given times, as many as can be taken."""
        B, dim = len(self.model.bodies), self.model.dim
        x, q, v, w = (np.zeros((B, n)) for n in (3, 4, 3, 3))
        x[:, :dim], v[:, :dim] = state.x, state.v
        if dim == 3:
            q[:], w[:] = state.q, state.w
        else:
            q[:, 0], w[:, 2] = state.q, state.w[:, 0]
        counts, ends = np.zeros(2, np.int32), np.ascontiguousarray(ends, float)
        with deferred() as self._signals:
            taken = self._library.ig_march(
                self._handle,
                ctypes.c_double(state.time),
                *(address(a) for a in (x, q, v, w)),
                ctypes.c_double(h),
                ctypes.c_int(len(ends)),
                address(ends),
                address(counts),
            )
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        text = ctypes.create_string_buffer(200)
        n = self._library.ig_reason(self._handle, text, ctypes.c_int(200))
        return self._output(int(taken), int(counts[0]), int(counts[1]), text.raw[:n].decode())

    @property
    def pressed(self) -> np.ndarray:
        """(n, 8) what contacts of crowds pressed with in the last step: where the next one starts."""
        rows = np.zeros((self._library.ig_pressed(self._handle, None), 8))
        self._library.ig_pressed(self._handle, address(rows))
        return rows

    @pressed.setter
    def pressed(self, rows: np.ndarray) -> None:
        rows = np.ascontiguousarray(rows, float)
        self._library.ig_press(self._handle, ctypes.c_int(len(rows)), address(rows))

    def _output(self, taken: int, solves: int, contacts: int, reason: str) -> MarchOutput:
        B, dim = len(self.model.bodies), self.model.dim
        numbers, states, half = np.zeros((solves, 6)), np.zeros((solves, B, 13)), np.zeros((solves, B, 6))
        bodies, notes = np.zeros((solves, B), np.int8), np.zeros((taken, 7))
        self._library.ig_solves(self._handle, *(address(a) for a in (numbers, states, half, bodies, notes)))
        table = np.zeros(solves, SOLVE)
        table["step"], table["form"] = numbers[:, 0], np.array(FORMS)[numbers[:, 1].astype(int)]
        for k, name in enumerate(("time", "h", "iterations", "residual"), 2):
            table[name] = numbers[:, k]
        table["status"] = "converged"
        parts = {"x": states[:, :, :dim], "v": states[:, :, 7 : 7 + dim]}
        parts["q"] = states[:, :, 3:7] if dim == 3 else states[:, :, 3]
        parts["w"] = states[:, :, 10:] if dim == 3 else states[:, :, 12:]
        half = half if dim == 3 else half[:, :, [0, 1, 5]]
        arrays = {name: np.ascontiguousarray(part) for name, part in parts.items()}
        found = SolveArrays(
            table, half=half, bodies=bodies.astype(bool), contacts=self._contacts(contacts), **arrays
        )
        euler, divided, plain = (notes[:, k] > 0 for k in range(3))
        plain |= not self.fourth
        why, work = notes[:, 3].astype(int), notes[:, 5:].astype(int)
        return MarchOutput(found, euler, divided, plain, why, notes[:, 4], work, reason)

    def _contacts(self, count: int) -> np.ndarray:
        whole, values = np.zeros((count, 10), np.int32), np.zeros((count, 25))
        self._library.ig_contacts(self._handle, address(whole), address(values))
        dim = self.model.dim
        out = np.zeros(count, contact_dtype(dim))
        for k, name in enumerate(
            ("solve", "pair", "feature", "first", "second", "stage", "impact", "lagged", "slid")
        ):
            out[name] = whole[:, k]
        for k, name in enumerate(("point", "normal", "tangent", "binormal", "end_point")):
            out[name] = values[:, 3 * k : 3 * k + dim]
        names = ("gap", "p_n", "p_t", "p_o", "p_r", "v_t", "v_o", "v_r", "bounce", "approach")
        for k, name in enumerate(names, 15):
            out[name] = values[:, k]
        own = whole[:, 9] > 0
        for name, given in (("gap_point", "point"), ("gap_normal", "normal")):
            out[name][own] = out[given][own]
        return out
