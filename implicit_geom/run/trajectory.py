"""The result of a simulation: motion, energy, contacts and how every step was solved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.errors import CallError, SceneError
from implicit_geom.interface.writing import file_name
from implicit_geom.model.model import Model, State
from implicit_geom.model.solve_arrays import ENTRIES, PARTS, PLAIN, Solves
from implicit_geom.process.lazy import cached_property
from implicit_geom.process.threads import working
from implicit_geom.run.record.assessment import assess
from implicit_geom.run.record.call_account import Call, of_steps
from implicit_geom.run.record.contact_table import contact_table
from implicit_geom.run.record.solve_log import SolveLog
from implicit_geom.run.record.step_log import StepLog, fields
from implicit_geom.run.report import summary
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene

ROWS = 1 << 16  # rows for which an energy is computed at once


@dataclass(frozen=True)
class BodyMotion:
    """One body at every time of a run; in the plane orientation and angular_velocity are (T+1,)."""

    position: np.ndarray  # (T+1, dim) centre of mass (the shape's origin of a fixed body), m
    orientation: np.ndarray  # (T+1, 4) quaternions w, x, y, z
    velocity: np.ndarray  # (T+1, dim) m/s
    angular_velocity: np.ndarray  # (T+1, 3) world frame, rad/s


class Trajectory:
    """A run: `run.time`, `run["egg"].position`, `run.energy`, `run.contacts`, `run.steps`, `run.solves`.

    Arrays over time have T+1 rows, the first being the start. `failed` and `failure` say whether
    and why a run with on_failure="record" ended early; its last good state is the last row. `calls` has an
    account of each call of `simulate` that made the run (`implicit_geom.run.record.call_account`).
    """

    def __init__(
        self,
        scene: Scene,
        options: SimulationOptions,
        initial: State,
        solves: Solves | SolveLog,
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
    def solves(self) -> Solves:
        """Every accepted solve as arrays; of a long run they are unpacked anew each time: keep the result."""
        return self.log.solves()

    @cached_property
    def steps(self) -> np.ndarray:
        """Structured array, one row per step: how it was solved, its residuals and energies.

        Residuals (`check.certificate`) and energies (`model.ledger`) are computed when this
        is first read, for all steps at once. `reason` says why a step was not an ordinary one
        (`model.reasons`). Of a run with record=n a row is that of every n-th step; its residuals are
        the largest, its energies and its wall time the sums over the n steps.
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
        """(T+1,) s."""
        return np.concatenate([[self.initial.time], self.taken["time"][self._good]])

    @property
    def _ends(self) -> np.ndarray:
        """The number of the last solve of every step."""
        steps = np.arange(len(self.time) - 1)
        return np.searchsorted(self.log.column("table", "step"), steps, side="right") - 1

    @cached_property
    def states(self) -> State:
        """All states stacked, (T+1, B, ...); `time` is that of the last one."""
        return State(float(self.time[-1]), *(self.stacked(part) for part in PARTS))

    def stacked(self, part: str) -> np.ndarray:
        """x, q, v or w of all states, (T+1, B, ...)."""
        first, ends = getattr(self.initial, part), self._ends
        out = np.empty((len(ends) + 1, *first.shape))
        out[0] = first
        for body in range(len(first)):  # (all at once would take the memory twice)
            out[1:, body] = self.log.ends(part, ends, body)
        return out

    def __getitem__(self, name: str) -> BodyMotion:
        self.scene.require(name, "run")
        if name not in self._motions:
            i, ends = self.names.index(name), self._ends
            x, q, v, w = (
                np.concatenate([getattr(self.initial, part)[i : i + 1], self.log.ends(part, ends, i)])
                for part in PARTS
            )
            self._motions[name] = BodyMotion(x, q, v, w if self.scene.dim == 3 else w[:, 0])
        return self._motions[name]

    @property
    def final(self) -> State:
        """The last good state."""
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
        """(T+1,) J."""
        total = np.zeros(len(self.time))
        for body in self.scene.bodies.values():
            if body.fixed:
                continue
            motion = self[body.name]
            for rows in _blocks(len(total)):
                v, w = motion.velocity[rows], motion.angular_velocity[rows]
                if self.scene.dim == 3:
                    w = np.einsum("tji,tj->ti", rotation.matrix(motion.orientation[rows]), w)  # body axes
                else:
                    w = w[:, None]
                total[rows] += (
                    body.mass / 2 * np.einsum("ti,ti->t", v, v)
                    + np.einsum("ti,ij,tj->t", w, body.inertia, w) / 2
                )
        return total

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """(T+1,) J: -m g . x summed over the bodies, of gravity alone, zero at the world's origin."""
        total = np.zeros(len(self.time))
        for body in self.scene.bodies.values():
            if not body.fixed:
                total -= body.mass * self[body.name].position @ self.scene.gravity
        return total

    @property
    def energy(self) -> np.ndarray:
        """(T+1,) J."""
        return self.kinetic_energy + self.potential_energy

    @cached_property
    def ledger(self) -> np.ndarray:
        """Where the energy went, structured array, one row per step, J; see `implicit_geom.model.ledger`.

        kinetic and potential are those at the end of the step, the others belong to the step alone, or to the
        steps since the row before where not all are kept:
        kinetic + potential changes by work - friction - impact + remainder.
        """
        self.assess()
        names = ("kinetic", "potential", *ENTRIES)
        rows = np.zeros(len(self.time) - 1, np.dtype([("time", "f8"), *[(name, "f8") for name in names]]))
        rows["time"] = self.time[1:]
        rows["kinetic"], rows["potential"] = self.kinetic_energy[1:], self.potential_energy[1:]
        for name in ENTRIES:
            rows[name] = self.taken[f"{name}_energy"][self._good]
        return rows

    @cached_property
    def contacts(self) -> np.ndarray:
        """Structured array, one row per step and closed contact; see `run.record.contact_table`."""
        return np.concatenate([*self.contact_blocks()])

    def contact_blocks(self) -> Iterator[np.ndarray]:
        """`contacts` in pieces."""
        times, pyramid = self.taken["time"], self.options.switches.friction == "pyramid"
        some = len(self.log) > 0
        for solves in self.log.blocks() if some else [self.log.part(0, 0)]:
            yield contact_table(self.scene, solves, times, self.options.undecided, pyramid)

    @property
    def max_penetration(self) -> float:
        """Metres, >= 0: the deepest overlap of a closed contact at the end of any solve, kept or not."""
        kept = -self.log.column("contacts", "gap").min(initial=0.0)
        return float(max(kept, *(call.deepest for call in self.calls), 0.0)) + 0.0

    def table(self, name: str) -> dict[str, np.ndarray]:
        """`contacts`, `steps` or `ledger` as plain columns (point_x, ...), as pandas.DataFrame takes them."""
        if name not in ("contacts", "steps", "ledger"):
            raise SceneError(f"table = {name!r} must be 'contacts', 'steps' or 'ledger'")
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
        """A few lines of text: steps, energy, time taken, and what was out of the ordinary."""
        return summary(self)

    @working()
    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the run to an HDF5 file (.h5, .hdf5), whole or not at all.

        An earlier run of that name is replaced, any other file only with `force`. SimulationError where the
        disk is full: the run and what was there are kept.
        """
        from implicit_geom.run.storage.saved_runs import save

        save(self, file_name(path), force=force)

    @staticmethod
    @working()
    def load(path: str | Path) -> Trajectory:
        """Read a run that `save` wrote; SceneError where the file is another one, or damaged."""
        from implicit_geom.run.storage.saved_runs import load

        return load(file_name(path))

    @checked_call(CallError, "resume")
    def resume(self, *, duration: float, scene: Scene | None = None, **changes: Any) -> Trajectory:
        """This run continued by `duration` seconds, the part so far included; options may be changed."""
        from implicit_geom.run.simulate import simulate

        options = {**self.options.as_dict(), **changes, "duration": duration}
        return simulate(scene, **options, resume=self)


def _blocks(rows: int) -> Iterator[slice]:
    """Rows in pieces: bounds the memory that is needed on the way."""
    return (slice(first, first + ROWS) for first in range(0, rows, ROWS))
