"""The result of a simulation: motion, energy, contacts and how every step was solved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom import rotation
from implicit_geom.assessment import assess
from implicit_geom.contacts import contact_table
from implicit_geom.errors import SceneError
from implicit_geom.model import Model, State
from implicit_geom.options import SimulationOptions
from implicit_geom.scene import Scene
from implicit_geom.solves import ASSESSED, ENTRIES, STATUSES, Solves
from shapes.lazy import cached_property


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
    and why a run with on_failure="record" ended early; its last good state is the last row.
    """

    def __init__(
        self,
        scene: Scene,
        options: SimulationOptions,
        initial: State,
        solves: Solves,
        steps: np.ndarray,
        memory: dict[str, Any],
        failure: str = "",
        *,
        assessed: int = 0,
    ) -> None:
        self.scene = scene
        self.options = options
        self.initial = initial
        self.solves = solves
        self.taken = steps  # `steps`, in which only the first `assessed` rows need be complete
        self.assessed = assessed
        self.memory = memory  # the solver's state at the end, see `implicit_geom.solver_state`
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
    def steps(self) -> np.ndarray:
        """Structured array, one row per step: how it was solved, its residuals and energies.

        Residuals (`implicit_geom.certificate`) and energies (`implicit_geom.ledger`) are computed when this
        is first read, for all steps at once.
        """
        if self.assessed < len(self.taken):
            model = Model(self.scene, self.options.friction_residual)
            stepper = self.options.switches
            self.taken = assess(model, self.initial, self.solves, self.taken, self.assessed, stepper)
            self.assessed = len(self.taken)
        return self.taken

    @cached_property
    def good_steps(self) -> np.ndarray:
        """The rows of `steps` that were solved, without the columns that reading `steps` computes."""
        kept = [name for name in self.taken.dtype.names or () if name not in ASSESSED]
        return self.taken[kept][self.taken["status"] != "failed"]

    @cached_property
    def time(self) -> np.ndarray:
        """(T+1,) s."""
        return np.concatenate([[self.initial.time], self.good_steps["time"]])

    @cached_property
    def states(self) -> State:
        """All states stacked, (T+1, B, ...); `time` is that of the last one."""
        ends = np.searchsorted(self.solves.table["step"], np.arange(len(self.good_steps)), side="right") - 1
        parts = [
            np.concatenate([getattr(self.initial, part)[None], getattr(self.solves, part)[ends]])
            for part in ("x", "q", "v", "w")
        ]
        return State(float(self.time[-1]), *parts)

    def __getitem__(self, name: str) -> BodyMotion:
        self.scene.require(name, "run")
        i, s = self.names.index(name), self.states
        w = s.w[:, i] if self.scene.dim == 3 else s.w[:, i, 0]
        return BodyMotion(s.x[:, i], s.q[:, i], s.v[:, i], w)

    @property
    def final(self) -> State:
        """The last good state."""
        s = self.states
        return State(s.time, s.x[-1], s.q[-1], s.v[-1], s.w[-1])

    @cached_property
    def kinetic_energy(self) -> np.ndarray:
        """(T+1,) J."""
        total = np.zeros(len(self.time))
        for i, body in enumerate(self.scene.bodies.values()):
            if body.fixed:
                continue
            v, w = self.states.v[:, i], self.states.w[:, i]
            if self.scene.dim == 3:
                w = np.einsum("tji,tj->ti", rotation.matrix(self.states.q[:, i]), w)  # body axes
            total += (
                body.mass / 2 * np.einsum("ti,ti->t", v, v) + np.einsum("ti,ij,tj->t", w, body.inertia, w) / 2
            )
        return total

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """(T+1,) J: -m g . x summed over the bodies, of gravity alone, zero at the world's origin."""
        total = np.zeros(len(self.time))
        for i, body in enumerate(self.scene.bodies.values()):
            if not body.fixed:
                total -= body.mass * self.states.x[:, i] @ self.scene.gravity
        return total

    @property
    def energy(self) -> np.ndarray:
        """(T+1,) J."""
        return self.kinetic_energy + self.potential_energy

    @cached_property
    def ledger(self) -> np.ndarray:
        """Where the energy went, structured array, one row per step, J; see `implicit_geom.ledger`.

        kinetic and potential are those at the end of the step, the others belong to the step alone:
        kinetic + potential changes by work - friction - impact + remainder.
        """
        names, good = ("kinetic", "potential", *ENTRIES), self.steps["status"] != "failed"
        rows = np.zeros(len(self.good_steps), np.dtype([("time", "f8"), *[(name, "f8") for name in names]]))
        rows["time"] = self.good_steps["time"]
        rows["kinetic"], rows["potential"] = self.kinetic_energy[1:], self.potential_energy[1:]
        for name in ENTRIES:
            rows[name] = self.steps[f"{name}_energy"][good]
        return rows

    @cached_property
    def contacts(self) -> np.ndarray:
        """Structured array, one row per step and closed contact; see `implicit_geom.contacts`."""
        pyramid = self.options.switches.friction == "pyramid"
        return contact_table(self.scene, self.solves, self.taken["time"], self.options.undecided, pyramid)

    @property
    def max_penetration(self) -> float:
        """Metres, >= 0: the deepest overlap of a closed contact at the end of any solve."""
        return float(-self.solves.contacts["gap"].min(initial=0.0)) + 0.0

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
        """A few lines of text: steps, iterations, penetration, energy, time taken."""
        steps, energy = self.taken, self.energy
        counts = ", ".join(f"{n} {s}" for s in STATUSES if (n := int(np.sum(steps["status"] == s))))
        # the zero of the potential is arbitrary: a start near zero is no measure of the energy at hand
        scale = max(abs(energy[0]), float(self.kinetic_energy.max(initial=0.0)))
        change = f" ({(energy[-1] - energy[0]) / scale:+.3g} relative)" if scale > 0 else ""
        iterations = self.good_steps["iterations"] if len(self.good_steps) else np.zeros(1)
        lines = [
            f"time        {self.time[0]:g} to {self.time[-1]:g} s in {len(self.good_steps)} steps: {counts}",
            f"stepper     {self.options.stepper}{self._guarded()}",
            f"iterations  median {np.median(iterations):g}, most {iterations.max():g} a step",
            f"contacts    {len(self.contacts)} rows, deepest penetration {self.max_penetration:.3g} m",
            f"energy      {energy[0]:.9g} J to {energy[-1]:.9g} J{change}",
            self._balance(scale),
            f"wall time   {steps['wall_time'].sum():.3g} s",
        ]
        if self.failed:
            lines.insert(0, f"FAILED      {self.failure}")
        return "\n".join(lines)

    def _guarded(self) -> str:
        """How many steps were composed, and how many the guard took in another way."""
        steps = self.good_steps
        if self.options.switches.integrator == "euler" or not len(steps):
            return ""
        if self.options.name == "implicit-rattle-4":
            own = int(np.sum((steps["form"] == "rattle-4") & (steps["guard"] == "none")))
            parts = [f"{own} steps of order four"]
        else:
            parts = []
        guarded = steps["guard"][steps["guard"] != "none"]
        ways = {"composed": "composed", "substeps": "in sub-steps", "euler": "in Euler's form"}
        counts = ", ".join(
            f"{n} {words}" for way, words in ways.items() if (n := int(np.sum(guarded == way)))
        )
        parts.append(
            f"{len(guarded) / len(steps):.2%} of the steps guarded" + (f" ({counts})" if counts else "")
        )
        return ": " + ", ".join(parts)

    def _balance(self, scale: float) -> str:
        """The sums of the ledger; the remainder also over the energy at hand, and that of the worst step."""
        ledger = self.ledger
        sums = {name: float(ledger[name].sum()) for name in ENTRIES}
        lost = f"lost in friction {sums['friction']:.6g} J, in impacts {sums['impact']:.6g} J"
        lines = [f"ledger      work {sums['work']:.6g} J, {lost}"]
        relative = ""
        if scale > 0 and len(ledger):
            worst = float(np.max(ledger["remainder"]))
            relative = (
                f" ({sums['remainder'] / scale:+.2g} relative, largest gain in a step {worst / scale:.2g})"
            )
        lines.append(f"remainder   {sums['remainder']:+.3g} J{relative}: the error of the steps")
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write the run to an HDF5 file, whole or not at all."""
        from implicit_geom.storage import save

        save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Trajectory:
        """Read a run that `save` wrote."""
        from implicit_geom.storage import load

        return load(Path(path))

    def resume(self, *, duration: float, scene: Scene | None = None, **changes: Any) -> Trajectory:
        """This run continued by `duration` seconds, the part so far included; options may be changed."""
        from implicit_geom.simulate import simulate

        options = {**self.options.as_dict(), **changes, "duration": duration}
        return simulate(scene, **options, resume=self)
