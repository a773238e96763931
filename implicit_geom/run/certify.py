"""`run.certify()`: a run checked from its states, its impulses and its scene, without the solver's code.

Momentum, laws and gaps of every solve (`check.certificate`), the law of restitution (`check.impact_check`),
and the geometry from poses and shapes (`check.geometry_check`): what a run says of itself is not believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from implicit_geom.check.certificate import NAMES, residuals
from implicit_geom.check.geometry_check import AT_THE_END, Poses, contact_residuals, overlaps
from implicit_geom.check.impact_check import Asked, restitution_residual
from implicit_geom.check.motion_arrays import MotionArrays, matrix, planar
from implicit_geom.model.model import Model, State
from implicit_geom.model.solve_arrays import SolveArrays
from implicit_geom.scene.scene import Scene
from implicit_geom.scene.switches import NAMED, Stepper

LOOSE = 100  # times the tolerance: what a residual may reach, over the run's speeds or lengths
ANGLE = 1e-6  # rad: of a normal
ROUNDING = 1e-13  # of the coordinates that a gap is the difference of
WHAT = {
    "dynamics": ("m/s", "momentum of every body in every part of a step, and the pose that follows"),
    "time": ("s", "every body is taken through every step, once"),
    "gap": ("m", "what contacts that press leave between bodies, as recorded"),
    "complementarity": ("m/s", "no impulse pulls, and none acts across a gap"),
    "friction": ("m/s", "Coulomb's law; in an impact of the whole impulse against the slip after"),
    "restitution": ("m/s", "the impact law with the restitution that the scene asks for"),
    "overlap": ("m", "of any two bodies at the ends of the steps, from poses and shapes"),
    "contact": ("m", "distance of contact points from both surfaces, from poses and shapes"),
    "normal": ("rad", "of contacts, from the normal cones of both shapes"),
}
GEOMETRY = ("overlap", "contact", "normal")


@dataclass(frozen=True)
class Residual:
    """The largest value of one residual in a run.

    value, unit   the largest value over all steps
    bound         what it must not exceed; infinite where a classical stepper promises nothing
    step, time    the number of the step with that value, from 0, and its end, s; -1 is the start
    """

    name: str
    value: float
    unit: str
    bound: float
    step: int
    time: float

    @property
    def ok(self) -> bool:
        """Whether it keeps its bound."""
        return bool(self.value <= self.bound)


@dataclass(frozen=True, repr=False)
class Certificate:
    """What `run.certify()` gives: residuals by name, and whether all keep their bounds.

    residuals   dict of name: value, unit, bound, step, time, ok
    steps       that were checked
    notes       what could not be checked, and why

    >>> certificate = run.certify()
    >>> certificate.ok, certificate.residuals["overlap"].unit
    (True, 'm')
    """

    residuals: dict[str, Residual]
    steps: int
    stepper: str
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every residual keeps its bound."""
        return all(r.ok for r in self.residuals.values())

    @property
    def broken(self) -> list[str]:
        """The names of the residuals that do not."""
        return [name for name, r in self.residuals.items() if not r.ok]

    def __repr__(self) -> str:
        verdict = "holds" if self.ok else f"does NOT hold: {', '.join(self.broken)}"
        return f"<Certificate of {self.steps} steps, {self.stepper}: {verdict}>"

    def __str__(self) -> str:
        verdict = "holds" if self.ok else f"does NOT hold: {', '.join(self.broken)}"
        lines = [
            f"certificate of {self.steps} steps, {self.stepper}: {verdict}",
            f"{'':4s}  {'residual':15s}  {'largest':>9s}  {'bound':>9s}  {'unit':4s}  {'at t, s':>9s}",
        ]
        for r in self.residuals.values():
            bound = f"{r.bound:9.2g}" if np.isfinite(r.bound) else f"{'none':>9s}"
            mark = "NOT" if not r.ok else "ok" if np.isfinite(r.bound) else "-"
            lines.append(f"{mark:4s}  {r.name:15s}  {r.value:9.2g}  {bound}  {r.unit:4s}  {r.time:9.6g}")
        return "\n".join([*lines, *(f"note  {text}" for text in self.notes)])


def certify(run: Any, scene: Scene) -> Certificate:
    """The certificate of a run as one of the scene."""
    return _Checker(run, scene).certificate()


class _Checker:
    """Collects the residuals of a run, step by step."""

    def __init__(self, run: Any, scene: Scene) -> None:
        self.run, self.options = run, run.options
        self.exact = True  # gaps and surfaces are: the geometry can be asked for
        self.model = Model(scene, run.options.friction_residual)
        self.count = len(run.time) - 1
        self.found = {name: np.zeros(self.count) for name in WHAT}
        self.first_overlap = 0.0
        self.speed, self.far = 0.0, 0.0
        self.thin = len(run.taken) < sum(call.steps for call in run.calls)
        self.notes: list[str] = []

    def certificate(self) -> Certificate:
        steppers = self._steppers()
        self.exact = all(not {"gap", "surface"} & set(s.approximated) for s in steppers if s)
        start = self.run.initial
        self._scale(start.x[None], start.v[None], start.w[None])
        for solves in self.run.log.blocks():
            self._block(start, solves, steppers)
            start = solves.end(len(solves) - 1)
        if self.exact:
            first = self._poses(_stacked(self.run.initial))
            self.first_overlap = float(overlaps(first, _no_contacts(self.model))[0])
        else:
            self.notes.append("a classical stepper with facets or linearised gaps promises no geometry")
        if self.thin:
            self.notes.append(
                "not all steps were kept: momentum and laws are those that were computed while it ran, "
                "restitution and geometry are of the steps that were kept"
            )
        if self.run.failed:
            self.notes.append(f"the run ended early: {self.run.failure}")
        return Certificate(
            {name: self._residual(name) for name in WHAT},
            self.count,
            str(self.options.stepper),
            tuple(self.notes),
        )

    def _steppers(self) -> list[Stepper | None]:
        """The stepper of each step; None where the run does not know it any more."""
        if self.thin or len({call.stepper for call in self.run.calls}) == 1:
            return [self.options.switches] * self.count
        out: list[Stepper | None] = []
        for call in self.run.calls:
            known = call.stepper in NAMED
            if not known and call.stepper != str(self.options.stepper):
                self.notes.append(f"steps by {call.stepper} are not checked: continued by another stepper")
            own = Stepper.named(call.stepper) if known else self.options.switches
            out += [own if known or call.stepper == str(self.options.stepper) else None] * call.steps
        return out[: self.count]

    def _block(self, start: State, solves: SolveArrays, steppers: list[Stepper | None]) -> None:
        """Whole steps."""
        step = solves.table["step"]
        self._scale(solves.x, solves.v, solves.w)
        motion = MotionArrays.of(self.model, start, solves)
        if self.thin:
            self._recorded()
        else:
            for stepper, here in _runs_of(steppers, step):
                part = solves.part(here.start, here.stop)
                before = start if here.start == 0 else solves.end(here.start - 1)
                if stepper is not None:
                    for name, values in residuals(self.model, before, part, stepper).items():
                        np.maximum.at(self.found[name], step[here], values)
        lengths = self.run.taken["step"][step]
        asked = Asked(self.options.impact_law, self.options.max_impacts, step, lengths)
        contacts = solves.contacts
        if self.thin:  # (what was before the first solve of a step is not known)
            contacts = contacts[np.diff(step, prepend=-1)[contacts["solve"]] == 0]
        np.maximum.at(self.found["restitution"], step, restitution_residual(motion, contacts, asked))
        self._times(solves)
        if self.exact:
            self._geometry(solves)

    def _recorded(self) -> None:
        self.run.assess()
        for name in NAMES:
            self.found[name] = np.nan_to_num(self.run.taken[name][: self.count], nan=np.inf)

    def _times(self, solves: SolveArrays) -> None:
        """Every moving body is in solves as long as the step."""
        step = solves.table["step"]
        number, row = np.unique(step, return_inverse=True)
        total = np.zeros((len(number), solves.bodies.shape[1]))
        np.add.at(total, row, solves.table["h"][:, None] * solves.bodies)
        wanted = self.run.taken["step"][number]
        off = np.max(np.abs(total[:, self.model.moving] - wanted[:, None]), axis=1)
        self.found["time"][number] = np.maximum(self.found["time"][number], off)

    def _geometry(self, solves: SolveArrays) -> None:
        c, step = solves.contacts, solves.table["step"]
        c = c[np.isin(c["stage"], AT_THE_END)]
        ends = np.flatnonzero(np.append(np.diff(step) != 0, True))
        poses = self._poses(State(0.0, solves.x, solves.q, solves.v, solves.w))
        off, turned = contact_residuals(poses, c)
        np.maximum.at(self.found["contact"], step[c["solve"]], off)
        np.maximum.at(self.found["normal"], step[c["solve"]], turned)
        number = np.full(len(solves), -1)
        number[ends] = np.arange(len(ends))
        known = c[number[c["solve"]] >= 0]
        known["solve"] = number[known["solve"]]
        at_ends = Poses(self.model, poses.x[ends], poses.R[ends])
        np.maximum.at(self.found["overlap"], step[ends], overlaps(at_ends, known))

    def _poses(self, states: State) -> Poses:
        R = matrix(states.q) if self.model.dim == 3 else planar(states.q)
        return Poses(self.model, states.x, R)

    def _scale(self, x: np.ndarray, v: np.ndarray, w: np.ndarray) -> None:
        """The largest speed of any point, m/s, and the largest coordinate, m."""
        m = self.model.moving
        reach = np.where(np.isfinite(self.model.reach), self.model.reach, 1.0)[m]
        speed = np.linalg.norm(v[:, m], axis=-1) + reach * np.linalg.norm(w[:, m], axis=-1)
        pulled = np.linalg.norm(self.model.loads(self.run.initial.time)[m, : self.model.dim], axis=1)
        step = float(self.run.options.step)
        self.speed = max(self.speed, float(speed.max()), float(np.max(step * pulled / self.model.mass[m])))
        self.far = max(self.far, float(np.abs(x).max()))

    def _residual(self, name: str) -> Residual:
        values = self.found[name]
        values = np.where(np.isnan(values), np.inf, values)
        at = int(np.argmax(values)) if self.count else -1
        value = float(values[at]) if self.count else 0.0
        if name == "overlap" and self.first_overlap > value:
            at, value = -1, self.first_overlap
        time = float(self.run.time[at + 1])
        return Residual(name, value, WHAT[name][0], self._bound(name), at, time)

    def _bound(self, name: str) -> float:
        loose = LOOSE * self.options.tolerance
        if name in GEOMETRY and not self.exact:
            return np.inf
        if name == "normal":
            return ANGLE
        if name == "time":
            return 1e-9 * self.options.step
        if name in ("gap", "overlap", "contact"):
            size = self.model.pieces.size
            return loose * float(size[np.isfinite(size)].min(initial=np.inf)) + ROUNDING * self.far
        if name == "friction":
            loose = LOOSE * self.options.undecided
        return loose * self.speed


def _stacked(state: State) -> State:
    return State(state.time, *(getattr(state, part)[None] for part in ("x", "q", "v", "w")))


def _no_contacts(model: Model) -> np.ndarray:
    return SolveArrays.empty(model.initial_state()).contacts


def _runs_of(steppers: list[Stepper | None], step: np.ndarray) -> Iterator[tuple[Stepper | None, slice]]:
    """Solves in a row whose steps are of one stepper."""
    each = [steppers[k] for k in step.tolist()]
    first = 0
    for k in range(1, len(each) + 1):
        if k == len(each) or each[k] != each[first]:
            yield each[first], slice(first, k)
            first = k
