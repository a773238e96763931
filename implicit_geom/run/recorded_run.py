"""A run as it was recorded: motion, energy, contacts and how every step was solved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from implicit_geom.interface.errors import SceneError
from implicit_geom.model.model import Model, State
from implicit_geom.model.solve_arrays import PARTS, PLAIN, SolveArrays
from implicit_geom.process.lazy import cached_property
from implicit_geom.process.threads import working
from implicit_geom.run.body_motion import BodyMotion
from implicit_geom.run.record.assessment import assess
from implicit_geom.run.record.call_account import Call, of_steps
from implicit_geom.run.record.contact_table import contact_table
from implicit_geom.run.record.impact_table import impact_table
from implicit_geom.run.record.solve_log import SolveLog
from implicit_geom.run.record.step_log import StepLog, fields
from implicit_geom.run.report import line, summary
from implicit_geom.run.run_energy import kinetic_energy, ledger, potential_energy
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene


class RecordedRun:
    """The data of a run and what follows from them; `Trajectory` adds what is done with one."""

    def __init__(
        self,
        scene: Scene,
        options: SimulationOptions,
        initial: State,
        solves: SolveArrays | SolveLog,
        steps: np.ndarray | StepLog,
        memory: dict[str, Any],
        failure: str = "",
        *,
        assessed: int = 0,
        calls: list[Call] | None = None,
    ) -> None:
        self.scene = scene
        self.options = options
        self.initial = initial
        self.log = SolveLog.of(solves)  # `solves`, packed
        # `steps`, of which only the first rows need be complete: the first `assessed` of an array
        self.taken = StepLog.of(steps, assessed)
        self.calls = [of_steps(str(options.stepper), self.taken)] if calls is None else calls
        self._motions: dict[str, BodyMotion] = {}
        self.memory = memory  # the solver's state at the end, see `implicit_geom.run.storage.solver_state`
        self.failure = failure

    @property
    def failed(self) -> bool:
        """Whether the run ended before its duration was over."""
        return bool(self.failure)

    @property
    def names(self) -> list[str]:
        """The bodies in the order in which they were added."""
        return list(self.scene.bodies)

    @property
    def solves(self) -> SolveArrays:
        """Every accepted solve as arrays: a step has one, or several where it was divided.

        Of a long run they are unpacked anew each time: keep the result.
        """
        return self.log.solves()

    @cached_property
    def steps(self) -> np.ndarray:
        """Structured array, one row per step: how it was solved, its residuals and energies.

        time, step          end of the step and its length, s
        iterations          of Newton's method
        status              converged, continued (by smoothing), substepped or failed
        form, guard         the scheme that took it; what the guard of the RATTLE steppers did
        solves, contacts    parts it was taken in; contacts that were closed
        impacts             instants within it at which velocities jump, each one of the solves
        residual            largest row of the equations, over the speeds at hand
        dynamics, gap, complementarity, friction
                            recomputed without the solver's code; gap in m, the others in m/s
        work_energy, friction_energy, impact_energy, remainder_energy
                            see `ledger`, J
        wall_time           s
        reason              why it was not an ordinary step, "" where it was

        Residuals and energies are computed when this is first read, for all steps at once. Of a run with
        record=n a row is that of every n-th step; its residuals are the largest, its energies, impacts and
        wall time the sums over the n steps.

        >>> run.steps["status"][:2].tolist(), bool(run.steps["gap"].max() < 1e-12)
        (['converged', 'converged'], True)
        """
        self.assess()
        return self.taken.rows()

    @working()
    def assess(self) -> None:
        """Compute the residuals and energies that are not known yet."""
        known = self.taken.assessed
        if known < len(self.taken):
            model = Model(self.scene, self.options.friction_residual)
            stepper = self.options.switches
            found = assess(model, self.initial, self.log, len(self.taken), known, stepper)
            self.taken.assess(found)

    @cached_property
    def good_steps(self) -> np.ndarray:
        """The rows of `steps` that were solved, without the columns that reading `steps` computes."""
        return fields(self.taken.rows(), PLAIN)[self._good]

    @cached_property
    def _good(self) -> slice:
        """The steps that were solved: all, or all but the last."""
        count = len(self.taken)
        return slice(count - int(count > 0 and self.taken.last("status") == "failed"))

    @cached_property
    def time(self) -> np.ndarray:
        """Times of all rows, (T+1,) s: the start and the end of every step."""
        return np.concatenate([[self.initial.time], self.taken["time"][self._good]])

    @property
    def _ends(self) -> np.ndarray:
        """The number of the last solve of every step."""
        steps = np.arange(len(self.time) - 1)
        return np.searchsorted(self.log.column("table", "step"), steps, side="right") - 1

    @cached_property
    def states(self) -> State:
        """All states stacked: x, q, v, w, (T+1, B, ...), bodies as in `names`; `time` is that of the last."""
        return State(float(self.time[-1]), *(self.stacked(part) for part in PARTS))

    def stacked(self, part: str) -> np.ndarray:
        """One part of all states, (T+1, B, ...): x (m), q, v (m/s) or w (rad/s)."""
        first, ends = getattr(self.initial, part), self._ends
        out = np.empty((len(ends) + 1, *first.shape))
        out[0] = first
        for body in range(len(first)):  # (all at once would take the memory twice)
            out[1:, body] = self.log.ends(part, ends, body)
        return out

    def __getitem__(self, name: str) -> BodyMotion:
        """The motion of a body by its name; SceneError where there is none of that name."""
        self.scene.require(name, "run")
        if name not in self._motions:
            i, ends = self.names.index(name), self._ends
            x, q, v, w = (
                np.concatenate([getattr(self.initial, part)[i : i + 1], self.log.ends(part, ends, i)])
                for part in PARTS
            )
            self._motions[name] = BodyMotion(x, q, v, w if self.scene.dim == 3 else w[:, 0], name)
        return self._motions[name]

    def __repr__(self) -> str:
        return line(self)

    def _ipython_key_completions_(self) -> list[str]:
        return self.names

    @property
    def final(self) -> State:
        """The last good state: time, x, q, v, w, (B, ...) over the bodies as in `names`."""
        if not len(self.log):
            return self.initial
        return self.log.end(len(self.log) - 1).at_time(float(self.time[-1]))

    def clock(self, step: float) -> tuple[float, int]:
        """Where the count of steps of this length starts, s, and how many of them are already taken."""
        lengths = self.taken["step"][self._good]
        if len(lengths) < sum(call.steps for call in self.calls):  # (some are not kept)
            base, count = self.calls[-1].clock
            return (base, int(count)) if step == self.options.step else (float(self.time[-1]), 0)
        other = np.flatnonzero(lengths != step)
        if other.size == 0:
            return self.initial.time, len(lengths)
        return float(self.time[other[-1] + 1]), len(lengths) - 1 - int(other[-1])

    @cached_property
    def kinetic_energy(self) -> np.ndarray:
        """Of all bodies, (T+1,) J."""
        return kinetic_energy(self)

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """(T+1,) J: -m g . x summed over the bodies, of gravity alone, zero at the world's origin."""
        return potential_energy(self)

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy, (T+1,) J."""
        return self.kinetic_energy + self.potential_energy

    @cached_property
    def ledger(self) -> np.ndarray:
        """Where the energy went: structured array, one row per step, J.

        time                  end of the step, s
        kinetic, potential    at the end of the step
        work                  of applied forces and torques, gravity apart
        friction, impact      lost in sliding, and in impacts
        remainder             all else: the error of the time step

        kinetic + potential changes by work - friction - impact + remainder. Computed when first read.

        >>> round(float(run.ledger["impact"].sum()), 4)
        0.0981
        """
        self.assess()
        return ledger(self)

    @cached_property
    def contacts(self) -> np.ndarray:
        """Structured array, one row per step and closed contact.

        time                 end of the step, s
        first, second        names of the bodies
        feature              tells several contacts of a pair apart, under classical steppers
        point                where the impulses act, world frame, m
        normal               unit vector from first to second; tangent and binormal are t and o of the
                             friction law
        gap                  m, negative where the bodies overlap
        p_n, p_t, p_o, p_r   impulses on `second` over the whole step, N s; p_r about the normal, N m s
        slip_speed           |(v_t, v_o)|, m/s
        mode                 stick or slide

        >>> str(run.contacts["mode"][-1]), round(float(run.contacts["p_n"][-1]), 4)  # m g h
        ('stick', 0.0981)
        """
        return np.concatenate([*self.contact_blocks()])

    def contact_blocks(self) -> Iterator[np.ndarray]:
        """`contacts` in pieces."""
        times, switches = self.taken["time"], self.options.switches
        some = len(self.log) > 0
        for solves in self.log.blocks() if some else [self.log.part(0, 0)]:
            yield contact_table(self.scene, solves, times, self.options.undecided, switches)

    @cached_property
    def impacts(self) -> np.ndarray:
        """Structured array, one row per impact and contact that was closed in it.

        impact               number of the impact; one may have several contacts
        time                 of the impact, s
        first, second        names of the bodies
        point                world frame, m
        normal               unit vector from first to second; tangent and binormal are t and o of the
                             friction law
        gap                  m
        approach             normal velocity before, m/s, negative where the bodies approach
        separation           normal velocity after, m/s
        p_n, p_t, p_o, p_r   impulses on `second`, N s; p_r about the normal, N m s
        slip_speed           |(v_t, v_o)| after, m/s
        restitution          that the scene asks for
        loss                 of energy in the whole impact, J, on its first row; zero on the others

        Of a run with record=n these are the impacts of the steps that are kept.

        >>> run.impacts.dtype.names[:4], len(run.impacts) == run.steps["impacts"].sum()
        (('impact', 'time', 'first', 'second'), True)
        """
        found, first = [], 0
        for solves in self.log.blocks() if len(self.log) else [self.log.part(0, 0)]:
            found.append(impact_table(self.scene, solves, first))
            first += int(np.sum(solves.table["form"] == "impact"))
        return np.concatenate(found)

    @property
    def max_penetration(self) -> float:
        """Metres, >= 0: the deepest overlap of a closed contact at the end of any solve, kept or not."""
        kept = -self.log.column("contacts", "gap").min(initial=0.0)
        return float(max(kept, *(call.deepest for call in self.calls), 0.0)) + 0.0

    def table(self, name: str) -> dict[str, np.ndarray]:
        """`contacts`, `impacts`, `steps` or `ledger` as plain columns, as pandas.DataFrame takes them.

        name   "contacts", "impacts", "steps" or "ledger"

        A dict of (rows,) arrays; a vector such as `point` is point_x, point_y, point_z.

        >>> list(run.table("ledger"))
        ['time', 'kinetic', 'potential', 'work', 'friction', 'impact', 'remainder']
        """
        if name not in ("contacts", "impacts", "steps", "ledger"):
            raise SceneError(f"table = {name!r} must be 'contacts', 'impacts', 'steps' or 'ledger'")
        array = getattr(self, name)
        columns: dict[str, np.ndarray] = {}
        for field in array.dtype.names:
            if array[field].ndim == 1:
                columns[field] = array[field]
                continue
            for i, axis in enumerate("xyz"[: self.scene.dim]):
                columns[f"{field}_{axis}"] = array[field][:, i]
        return columns

    def summary(self) -> str:
        """A few lines of text: steps, energy, time taken, and what was out of the ordinary.

        >>> print(run.summary())
        time        0 to 0.5 s in 50 steps: 50 converged
        stepper     implicit-rattle: 0.00% of the steps guarded
        ...
        """
        return summary(self)
