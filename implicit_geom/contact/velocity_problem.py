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

from implicit_geom.contact.contact_rows import ContactRows, mass_and_free_velocity
from implicit_geom.equations.thresholds import TOUCH
from implicit_geom.geometry.broad_phase import BroadPhase
from implicit_geom.geometry.patch_points import Patch, patch_points
from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.choices import number, positive
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.words import shown
from implicit_geom.model.model import Model, Pair, State
from implicit_geom.scene.scene import Scene
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
    M, v_free = mass_and_free_velocity(model, state, h, loads)
    rows = ContactRows(model, state, found)
    H, u = rows.directions(), rows.velocity()[:, 0]
    w = np.zeros((rows.count, rows.dim))
    w[:, 0] = np.maximum(rows.gap, 0.0) / h
    closed = rows.gap <= TOUCH * rows.sizes
    w[closed, 0] += (rows.restitution * np.minimum(u, 0.0))[closed]
    problem = ContactProblem(M=M, H=H, v_free=v_free, w=w.ravel(), mu=rows.mu, e=rows.axes(), dim=rows.dim)
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
