"""`contact_problem`: the velocity-level contact problem of a scene's start, or of a run at a time.

    M (v+ - v_free) = H p,   M v_free = M v + h (F - omega x J omega),   u = H^T v+ + w

with masses, contact points, normals and loads as they are at the state: the step of Stewart and Trinkle, of
which friction is Coulomb's own. In the normal row w = gap / h, so that a gap may close in the step and no
more; a gap below zero counts as none. A contact that is closed at the state has Newton's restitution there,
w = e_n min(u_n, 0) with its normal velocity u_n at the state, so that u_n+ >= -e_n u_n. One that closes in
the step has none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from implicit_geom.equations.tangent import references
from implicit_geom.equations.thresholds import TOUCH
from implicit_geom.geometry.broad_phase import BroadPhase
from implicit_geom.geometry.patch_points import Patch, patch_points
from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.choices import number, positive
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.words import shown
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.scene.scene import Friction, Scene
from implicit_geom.solvers.contact.problem import ContactProblem

SAME_TIME = 1e-6  # of a step, by which a time may be off one of the run's


@checked_call(CallError)
def contact_problem(
    scene_or_run: Any, *, step: float | None = None, time: float | None = None, reach: float | None = None
) -> ContactProblem:
    """The frictional contact problem of one step, at a scene's start or at a time of a run.

    scene_or_run   a Scene, or a run
    step           s; of a run its own if left out
    time           of a run: one of `run.time`, s; the last if left out
    reach          m: contacts with a larger gap are left out; what the bodies may move in the step if left
                   out

    Velocities are those of the moving bodies in the scene's order: v, m/s, and the angular velocity, rad/s,
    world frame, 6 a body (3 in the plane). A contact has the rows n, t, o (n, t in the plane; n, t, o, r for
    all where the friction of any of them has e_r > 0), p acts on its second body and against its first. Flat
    patches have several contacts: 4 for a box on a plane. `problem.places` says where they are.

    w = gap / step in the normal rows, plus restitution times the normal velocity where a closed contact is
    approaching; the normal velocity after the step is then at least -restitution times that before.

    >>> scene = Scene(gravity=(0, 0, -9.81))
    >>> scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    >>> scene.add("box", shapes.box(0.1, 0.1, 0.1), mass=2.0, position=(0, 0, 0.1))
    >>> scene.friction(mu=0.5)
    >>> problem = contact_problem(scene, step=0.01)
    >>> problem
    <ContactProblem: 4 contacts of 3 rows, 6 velocities>
    >>> problem.v_free.round(4)
    array([ 0.    ,  0.    , -0.0981,  0.    ,  0.    ,  0.    ])
    >>> problem.places["point"].round(3).tolist()[0], str(problem.places["second"][0])
    ([-0.1, -0.1, 0.0], 'box')
    """
    model, state, h = _start(scene_or_run, step, time)
    loads = model.loads(state.time)
    found = _contacts(model, state, h, loads, reach)
    M, v_free = _momentum(model, state, h, loads)
    rows = _Rows(model, state, found)
    H, u = rows.directions(), rows.velocity()
    w = np.zeros((rows.count, rows.dim))
    w[:, 0] = np.maximum(rows.gap, 0.0) / h
    size = np.array([min(model.pieces.size[i] for i in pair.pieces) for pair in rows.pairs])
    closed = rows.gap <= TOUCH * size
    restitution = np.array([law.restitution for law in rows.laws])
    w[closed, 0] += (restitution * np.minimum(u, 0.0))[closed]
    mu = np.array([law.mu for law in rows.laws], float)
    problem = ContactProblem(M=M, H=H, v_free=v_free, w=w.ravel(), mu=mu, e=rows.axes(), dim=rows.dim)
    problem.places = rows.places()
    return problem


def _start(given: Any, step: Any, time: Any) -> tuple[Model, State, float]:
    """The model, its state, and the step."""
    if isinstance(given, Scene):
        if step is None:
            raise SceneError("contact_problem: step is missing: give one in s, such as step=0.01")
        if time is not None:
            raise SceneError("contact_problem: time belongs to a run; a scene has its start alone")
        model = Model(given)
        return model, model.initial_state(), positive("step", step)
    if not (hasattr(given, "scene") and hasattr(given, "states")):
        raise SceneError(f"contact_problem: {shown(given)} must be a Scene or a run")
    h = positive("step", given.options.step if step is None else step)
    at = len(given.time) - 1
    if time is not None:
        t = number("time", time)
        at = int(np.argmin(np.abs(given.time - t)))
        if abs(given.time[at] - t) > SAME_TIME * h:
            raise SceneError(f"time = {t:g} is none of the run's; the nearest is {given.time[at]:g} s")
    x, q, v, w = (given.stacked(part)[at] for part in ("x", "q", "v", "w"))
    return Model(given.scene), State(float(given.time[at]), x, q, v, w), h


def _contacts(
    model: Model, state: State, h: float, loads: np.ndarray, reach: Any
) -> list[tuple[Pair, Patch]]:
    """Pairs with their patches, in the order of the pairs."""
    broad = BroadPhase(model)
    if reach is None:
        numbers = broad.candidates(state, h, loads)
        bounds = broad.expected(state, h, loads, np.array(numbers, int)).tolist()
    else:
        bound = number("reach", reach)
        numbers = broad.within(state, bound)
        bounds = [bound] * len(numbers)
    found = []
    for c, bound in zip(numbers, bounds, strict=True):
        pair = model.pairs[c]
        a, b = (model.placed(state, piece) for piece in pair.pieces)
        patch = patch_points(a, b, bound)
        if patch.gap.size:
            found.append((pair, patch))
    return found


def _momentum(model: Model, state: State, h: float, loads: np.ndarray) -> tuple[sp.csc_matrix, np.ndarray]:
    """M of the moving bodies, world frame, and their velocities after the step if nothing touches."""
    dim, moving = model.dim, model.moving
    size = dim + model.spins
    blocks = np.zeros((moving.size, size, size))
    blocks[:, range(dim), range(dim)] = model.mass[moving, None]
    nu = np.column_stack([state.v, state.w])[moving]
    free = nu.copy()
    free[:, :dim] += h * loads[moving, :dim] / model.mass[moving, None]
    torque = loads[moving, dim:]
    if dim == 2:
        J = model.inertia[moving].reshape(-1, 1, 1)
    else:
        R = state.R[moving]
        J = R @ model.inertia[moving] @ np.swapaxes(R, 1, 2)
        spin = nu[:, 3:]
        torque = torque - np.cross(spin, np.einsum("nij,nj->ni", J, spin))
    blocks[:, dim:, dim:] = J
    free[:, dim:] += h * np.linalg.solve(J, torque[:, :, None])[:, :, 0]
    count = np.arange(moving.size + 1)
    M = sp.bsr_matrix((blocks, count[:-1], count), shape=(free.size, free.size))
    return sp.csc_matrix(M), free.ravel()


class _Rows:
    """Contacts one by one, in the scene's order of bodies: normal and binormal turned where it is another."""

    def __init__(self, model: Model, state: State, found: list[tuple[Pair, Patch]]) -> None:
        self.model, self.state = model, state
        self.pairs = [pair for pair, patch in found for _ in patch.gap]
        self.laws = [pair.law for pair in self.pairs]
        self.count = len(self.pairs)
        torsion = model.dim == 3 and any(law.mu > 0 and law.e_r > 0 for law in self.laws)
        self.dim = model.dim + int(torsion)
        sign = np.array([-1.0 if pair.swapped else 1.0 for pair in self.pairs]).reshape(-1, 1)
        bodies = np.array([(p.first, p.second) for p in self.pairs], int).reshape(-1, 2)
        self.bodies = np.where(sign < 0, bodies[:, ::-1], bodies)
        self.gap = np.concatenate([np.zeros(0), *(patch.gap for _, patch in found)])
        none = np.zeros((0, model.dim))
        # both bodies feel an impulse at the second one's point, so that angular momentum is kept
        self.point = np.concatenate([none, *(patch.point_b for _, patch in found)])
        n = np.concatenate([none, *(np.tile(patch.normal, (len(patch.gap), 1)) for _, patch in found)])
        t = self._tangents(n)
        self.axes_W = [sign * n, t] + ([sign * np.cross(n, t)] if model.dim == 3 else [])

    def _tangents(self, n: np.ndarray) -> np.ndarray:
        """t along the friction's direction, or along the world axis most across n."""
        if self.model.dim == 2:
            return np.column_stack([n[:, 1], -n[:, 0]])
        along = references(n, np.zeros_like(n))
        for k, law in enumerate(self.laws):
            if law.direction is not None:
                along[k] = self._direction(law)
        t = along - np.sum(along * n, axis=1)[:, None] * n
        return np.asarray(t / np.maximum(np.linalg.norm(t, axis=1), 1e-300)[:, None])

    def _direction(self, law: Friction) -> np.ndarray:
        given = np.array(law.direction)
        if law.frame is None:
            return given
        return np.asarray(self.state.R[self.model.names.index(law.frame)] @ given)

    def _wrenches(self, side: int) -> np.ndarray:
        """(n_c, d, dim + spins) on one body of a unit impulse of each row, as on the second."""
        dim, spins = self.model.dim, self.model.spins
        arm = self.point - self.state.x[self.bodies[:, side]]
        out = np.zeros((self.count, self.dim, dim + spins))
        for k, axis in enumerate(self.axes_W):
            out[:, k, :dim] = axis
            if dim == 3:
                out[:, k, dim:] = np.cross(arm, axis)
            else:
                out[:, k, 2] = arm[:, 0] * axis[:, 1] - arm[:, 1] * axis[:, 0]
        if self.dim == 4:
            out[:, 3, 3:] = self.axes_W[0]
        return out

    def directions(self) -> sp.csc_matrix:
        """H."""
        size = self.model.dim + self.model.spins
        place = np.full(len(self.model.bodies), -1)
        place[self.model.moving] = np.arange(self.model.moving.size)
        H = sp.csc_matrix((size * self.model.moving.size, self.dim * self.count))
        for side, sign in ((0, -1.0), (1, 1.0)):
            body = place[self.bodies[:, side]]
            moves = np.flatnonzero(body >= 0)
            W = sign * self._wrenches(side)[moves]
            row = size * body[moves, None, None] + np.arange(size) + np.zeros((1, self.dim, 1), int)
            column = self.dim * moves[:, None, None] + np.arange(self.dim)[:, None] + np.zeros(size, int)
            H = H + sp.csc_matrix((W.ravel(), (row.ravel(), column.ravel())), shape=H.shape)
        return sp.csc_matrix(H)

    def velocity(self) -> np.ndarray:
        """(n_c,) normal velocities at the state."""
        nu = np.column_stack([self.state.v, self.state.w])
        one, two = (
            np.einsum("ni,ni->n", self._wrenches(side)[:, 0], nu[self.bodies[:, side]]) for side in (0, 1)
        )
        return np.asarray(two - one)

    def axes(self) -> np.ndarray:
        """(n_c, d - 1) the friction ellipsoid's axes; ones where there is no friction at all."""
        names = ("e_t", "e_o", "e_r")[: self.dim - 1]
        e = np.array([[getattr(law, name) for name in names] for law in self.laws])
        e = e.reshape(self.count, self.dim - 1)
        return np.where(np.array([law.mu for law in self.laws]).reshape(-1, 1) > 0, e, 1.0)

    def places(self) -> np.ndarray:
        """Structured array, one row a contact, as `run.contacts` has them."""
        names = np.array(self.model.names)
        vectors = [(name, "f8", (self.model.dim,)) for name in ("point", "normal", "tangent", "binormal")]
        out = np.zeros(self.count, [("first", names.dtype), ("second", names.dtype), *vectors, ("gap", "f8")])
        out["first"], out["second"] = names[self.bodies[:, 0]], names[self.bodies[:, 1]]
        out["point"], out["gap"] = self.point, self.gap
        for name, axis in zip(("normal", "tangent", "binormal"), self.axes_W, strict=False):
            out[name] = axis
        return out
