"""Runs with impacts, put together by hand: flights in RATTLE's form, and jumps found by projection.

No stepper takes part. Bodies that turn about a principal axis, and spheres, may be flown: RATTLE's step is
then exact, and the spin is constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from implicit_geom import Scene, Trajectory, shapes
from implicit_geom.model.model import Model, State
from implicit_geom.model.records import IMPACT, Attempt, ContactRecord, Solve
from implicit_geom.model.solve_arrays import SolveArrays
from implicit_geom.run.record.call_account import Call
from implicit_geom.run.record.recorder import Recorder
from implicit_geom.run.record.solve_log import SolveLog
from implicit_geom.run.record.step_log import StepLog
from implicit_geom.scene.options import SimulationOptions

Change = Callable[[np.ndarray], np.ndarray]
SWEEPS = 20_000
DONE = 1e-15


@dataclass(frozen=True)
class Touch:
    """A point at which two bodies, by number, the first one added earlier, touch; normal to the second."""

    first: int
    second: int
    point: np.ndarray
    normal: np.ndarray


def recorded(scene: Scene, steps: list[list[Solve]], step: float, **options: object) -> Trajectory:
    """A run of these steps."""
    model = Model(scene)
    state = model.initial_state()
    made = SimulationOptions(duration=step * len(steps), step=step, **options)  # type: ignore[arg-type]
    call = Call(str(made.stepper), 1)
    log = SolveLog(SolveArrays.empty(state))
    every = made.record
    recorder = Recorder(model, call, log, StepLog(), taken=0, every=every, start=state, stepper=made.switches)
    for k, solves in enumerate(steps):
        recorder.add(Attempt(solves, form="rattle"), (k + 1) * step, step, 0.0, "")
    found = recorder.finish()
    call.clock = [0.0, len(steps)]
    memory = {"warm": {}, "normals": {}, "history": None}
    return Trajectory(scene, made, state, *found, memory, calls=[call])


def flown(model: Model, start: State, h: float, bodies: np.ndarray | None = None) -> Solve:
    """Free flight over h, of all bodies or of some."""
    fall = np.zeros_like(start.v)
    fall[model.moving] = (h / 2 * model.loads(start.time)[:, : model.dim] / model.mass[:, None])[model.moving]
    if bodies is not None:
        fall[~bodies] = 0.0
    half = np.concatenate([start.v + fall, start.w], axis=1)
    moves = np.ones(len(start.x), bool) if bodies is None else bodies
    moved = start.advanced(np.where(moves[:, None], half, 0.0), h)
    q = np.where(moves.reshape(-1, *(1,) * (start.q.ndim - 1)), moved.q, start.q)
    end = State(start.time + h, np.where(moves[:, None], moved.x, start.x), q, start.v + 2 * fall, start.w)
    return Solve(start, end, h, half, "rattle", [], 1, "converged", 0.0, bodies=bodies)


def struck(
    model: Model,
    start: State,
    touches: list[Touch],
    law: str = "newton",
    bodies: np.ndarray | None = None,
    change: Change | None = None,
) -> Solve:
    """The jump of velocities at a pose by an impact law; friction is isotropic, without torsion.

    `change` gives other impulses (n, t, o), with which momentum is kept, too.
    """
    dim = model.dim
    kicks = [_kick(model, start, t) for t in touches]
    nu = np.concatenate([start.v, start.w], axis=1)
    laws = [_law(model, t) for t in touches]
    before = [_velocity(nu, k) for k in kicks]
    bounce = [e * min(u[0], 0.0) for (_, e), u in zip(laws, before, strict=True)]
    if law == "newton":
        nu, p = _projected(nu, kicks, [mu for mu, _ in laws], bounce, [0.0] * len(kicks))
        first = [np.zeros(dim) for _ in p]
    else:
        nu, first = _projected(nu, kicks, [mu for mu, _ in laws], [0.0] * len(kicks), [0.0] * len(kicks))
        k = [e for _, e in laws] if law == "poisson" else _energetic(nu, kicks, laws, before, first)
        least = [own * p[0] for own, p in zip(k, first, strict=True)]
        nu, second = _projected(nu, kicks, [mu for mu, _ in laws], [0.0] * len(kicks), least)
        p = [a + b for a, b in zip(first, second, strict=True)]
        bounce = [0.0] * len(kicks)
    if change is not None:
        p = [change(own) for own in p]
        nu = np.concatenate([start.v, start.w], axis=1)
        nu += sum(np.einsum("k,kbi->bi", own, k.response) for own, k in zip(p, kicks, strict=True))
    end = State(start.time, start.x, start.q, nu[:, :dim], nu[:, dim:])
    counts: dict[int, int] = {}
    records = []
    for t, k, own, impulse, u, early in zip(touches, kicks, bounce, p, before, first, strict=True):
        pair = int(model.pairs.number(t.first, t.second))
        slip = np.append(_velocity(nu, k)[1:], np.zeros(3))[:3]
        if dim == 3:
            slip[2] = t.normal @ (nu[t.second, 3:] - nu[t.first, 3:])
        p_f = np.append(impulse[1:], np.zeros(3))[:3]
        frame = [*k.axes, np.zeros(2)][:3]
        record = ContactRecord(pair, t.point, *frame, 0.0, float(impulse[0]), p_f, slip, IMPACT)
        record.approach, record.bounce = float(u[0]), own
        record.compression = np.append(early, np.zeros(4))[:4]
        record.feature = counts[pair] = counts.get(pair, -1) + 1
        records.append(record)
    return Solve(start, end, 0.0, nu, "impact", records, 1, "converged", 0.0, bodies=bodies)


@dataclass(frozen=True)
class _Kick:
    """Rows n, t (and o) of a contact: velocity = jacobian nu, impulse = response p."""

    axes: tuple[np.ndarray, ...]
    jacobian: np.ndarray  # (dim, B, dim + spins)
    response: np.ndarray  # the same over the masses


def _energetic(
    nu: np.ndarray,
    kicks: list[_Kick],
    laws: list[tuple[float, float]],
    before: list[np.ndarray],
    first: list[np.ndarray],
) -> list[float]:
    """One factor for all contacts, by bisection: the decompression gives back e^2 of the normal work."""
    middle = [_velocity(nu, k)[0] for k in kicks]
    taken = [
        -(e**2) * p[0] * (u[0] + m) / 2 for (_, e), p, u, m in zip(laws, first, before, middle, strict=True)
    ]
    low, high = 0.0, 10.0
    for _ in range(60):
        k = (low + high) / 2
        least = [k * p[0] for p in first]
        end, second = _projected(nu, kicks, [mu for mu, _ in laws], [0.0] * len(kicks), least)
        given = [
            p[0] * (m + _velocity(end, own)[0]) / 2 for p, m, own in zip(second, middle, kicks, strict=True)
        ]
        low, high = (k, high) if sum(given) < sum(taken) else (low, k)
    return [low] * len(kicks)


def _kick(model: Model, s: State, t: Touch) -> _Kick:
    dim, n = model.dim, t.normal
    if dim == 2:
        axes: tuple[np.ndarray, ...] = (n, np.array([n[1], -n[0]]))
    else:
        across = np.cross(n, np.eye(3)[int(np.argmin(np.abs(n)))])
        tangent = across / np.linalg.norm(across)
        axes = (n, tangent, np.cross(n, tangent))
    jacobian = np.zeros((dim, len(s.x), dim + s.w.shape[1]))
    response = np.zeros_like(jacobian)
    for sign, b in ((-1.0, t.first), (1.0, t.second)):
        r = t.point - s.x[b]
        for k, axis in enumerate(axes):
            moment = np.atleast_1d(np.cross(r, axis) if dim == 3 else r[0] * axis[1] - r[1] * axis[0])
            jacobian[k, b] = sign * np.concatenate([axis, moment])
            if b in model.moving:
                J = s.R[b] @ model.inertia[b] @ s.R[b].T if dim == 3 else model.inertia[b]
                response[k, b, :dim] = sign * axis / model.mass[b]
                response[k, b, dim:] = sign * np.linalg.solve(J, moment)
    return _Kick(axes, jacobian, response)


def _law(model: Model, t: Touch) -> tuple[float, float]:
    law = model.scene.pair_friction(model.names[t.first], model.names[t.second])
    return law.mu, law.restitution


def _velocity(nu: np.ndarray, k: _Kick) -> np.ndarray:
    return np.asarray(np.einsum("kbi,bi->k", k.jacobian, nu))


def _projected(
    nu: np.ndarray, kicks: list[_Kick], mus: list[float], bounce: list[float], least: list[float]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Velocities and impulses of 0 <= p_n - least _|_ u_n + bounce >= 0 with Coulomb's law, by sweeps."""
    nu, p = nu.copy(), [np.zeros(len(k.axes)) for k in kicks]
    for i, k in enumerate(kicks):
        p[i][0] = least[i]
        nu += np.einsum("k,kbi->bi", p[i], k.response)
    for _ in range(SWEEPS):
        change = 0.0
        for i, k in enumerate(kicks):
            W = np.einsum("kbi,lbi->kl", k.jacobian, k.response)
            rate, old, u = 1 / np.trace(W), p[i].copy(), _velocity(nu, k)
            normal = max(old[0] - rate * (u[0] + bounce[i]), least[i])
            across = old[1:] - rate * u[1:]
            size = float(np.linalg.norm(across))
            radius = mus[i] * normal
            p[i] = np.append(normal, across if size <= radius else across * radius / size)
            nu += np.einsum("k,kbi->bi", p[i] - old, k.response)
            change = max(change, float(np.abs(p[i] - old).max()))
        if change < DONE:
            break
    return nu, p


# ---- runs


def dropped_ball(
    mu: float = 0.2, e: float = 0.6, law: str = "newton", change: Change | None = None, **options: object
) -> Trajectory:
    """A ball that spins and flies sideways strikes the ground at 0.0123 s, within its second step."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    height = 0.1 + 1.0 * 0.0123 + 9.81 * 0.0123**2 / 2
    spin = {"velocity": (1.0, 0.5, -1.0), "angular_velocity": (2.0, -3.0, 5.0)}
    scene.add("ball", shapes.sphere(0.1), mass=2.0, position=(0, 0, height), **spin)
    scene.friction(mu=mu, restitution=e)
    model = Model(scene)
    first = flown(model, model.initial_state(), 0.01)
    second = flown(model, first.end, 0.0023)
    point = second.end.x[1] * (1, 1, 0)
    jump = struck(model, second.end, [Touch(0, 1, point, np.array([0, 0, 1.0]))], law, change=change)
    third = flown(model, jump.end, 0.01 - 0.0023)
    last = flown(model, third.end, 0.01)
    return recorded(scene, [[first], [second, jump, third], [last]], 0.01, impact_law=law, **options)


def struck_twice(**options: object) -> Trajectory:
    """A ball between two walls strikes one with e = 0.5, and the other, in the same step, with none."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add("left", shapes.halfspace((1, 0, 0)), fixed=True)
    scene.add("ball", shapes.sphere(0.1), mass=1.0, position=(0.11, 0, 0), velocity=(-4.0, 0, 0))
    scene.add("right", shapes.halfspace((-1, 0, 0)), fixed=True, position=(0.21, 0, 0))
    scene.friction(restitution=0.5)
    model = Model(scene)
    along = np.array([1.0, 0, 0])
    solves = [flown(model, model.initial_state(), 0.01 / 4)]
    solves.append(struck(model, solves[-1].end, [Touch(0, 1, np.zeros(3), along)]))
    solves.append(flown(model, solves[-1].end, 0.01 / 2))
    scene.friction(restitution=0.0)
    solves.append(struck(Model(scene), solves[-1].end, [Touch(1, 2, 0.21 * along, along)]))
    scene.friction(restitution=0.5)
    solves.append(flown(model, solves[-1].end, 0.01 - 0.0075))
    return recorded(scene, [solves], 0.01, **options)


def dropped_box(e: float = 0.5, mu: float = 0.3, e_r: float = 0.0, spin: float = 0.0) -> Trajectory:
    """A box that slides lands flat, on four points; it spins about the vertical by `spin`, rad/s."""
    scene = Scene(gravity=(0, 0, -9.81))
    scene.add("ground", shapes.halfspace((0, 0, 1)), fixed=True)
    sizes = np.array([0.3, 0.2, 0.1])
    height = 0.1 + 1.0 * 0.004 + 9.81 * 0.004**2 / 2
    moves = {"velocity": (1.0, 0.2, -1.0), "angular_velocity": (0, 0, spin)}
    scene.add("box", shapes.box(*sizes), mass=1.5, position=(0, 0, height), **moves)
    scene.friction(mu=mu, restitution=e, e_r=e_r)
    model = Model(scene)
    first = flown(model, model.initial_state(), 0.004)
    s = first.end
    corners = [(a, b, -1.0) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
    up = np.array([0, 0, 1.0])
    touches = [Touch(0, 1, (s.x[1] + s.R[1] @ (sizes * c)) * (1, 1, 0), up) for c in corners]
    jump = struck(model, s, touches)
    return recorded(scene, [[first, jump, flown(model, jump.end, 0.006)]], 0.01)


def rectangle_on_its_corner(law: str = "newton", mu: float = 0.1, speed: float = 2.0) -> Trajectory:
    """In the plane: a tilted rectangle strikes the ground with a corner, whose slip turns back in between."""

    def started(height: float) -> tuple[Scene, Model, Solve, np.ndarray]:
        scene = Scene(dim=2, gravity=(0, -9.81))
        scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
        moves = {"velocity": (speed, -2.0), "angular_velocity": -1.0}
        box = shapes.rectangle(0.3, 0.1)
        scene.add("box", box, mass=1.0, position=(0, height), orientation=0.6, **moves)
        scene.friction(mu=mu, restitution=0.8)
        model = Model(scene)
        first = flown(model, model.initial_state(), 0.004)
        return scene, model, first, first.end.x[1] + first.end.R[1] @ (-0.3, -0.1)

    scene, model, first, corner = started(1 - started(1.0)[-1][1])
    jump = struck(model, first.end, [Touch(0, 1, corner * (1, 0), np.array([0, 1.0]))], law)
    return recorded(scene, [[first, jump, flown(model, jump.end, 0.006)]], 0.01, impact_law=law)


def two_islands() -> Trajectory:
    """In the plane: one disc strikes the ground while another flies, each stepped by itself."""
    scene = Scene(dim=2, gravity=(0, -9.81))
    scene.add("ground", shapes.halfplane((0, 1)), fixed=True)
    disc = shapes.disc(0.2)
    height = 0.2 + 2.0 * 0.007 + 9.81 * 0.007**2 / 2
    scene.add("low", disc, mass=1.0, position=(0, height), velocity=(1, -2), angular_velocity=3.0)
    scene.add("high", disc, mass=3.0, position=(0, 5), velocity=(-1, 1), angular_velocity=-1.0)
    scene.friction(mu=0.4, restitution=0.8)
    scene.applied("high", force=(1, 20))
    model = Model(scene)
    low, high = (np.arange(3) == k for k in (1, 2))
    first = flown(model, model.initial_state(), 0.007, low)
    point = first.end.x[1] * (1, 0)
    jump = struck(model, first.end, [Touch(0, 1, point, np.array([0, 1.0]))], bodies=low)
    rest = flown(model, jump.end, 0.003, low)
    start = rest.end.at_time(0.0)
    return recorded(scene, [[first, jump, rest, flown(model, start, 0.01, high)]], 0.01)
