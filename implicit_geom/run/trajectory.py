"""`Trajectory`: the result of a simulation, which can be saved, loaded and continued."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from implicit_geom.interface.arguments import checked_call
from implicit_geom.interface.errors import CallError
from implicit_geom.interface.words import hint, shown
from implicit_geom.interface.writing import file_name
from implicit_geom.process.threads import working
from implicit_geom.run.certify import Certificate, certify
from implicit_geom.run.march import check_same_bodies, march
from implicit_geom.run.recorded_run import RecordedRun
from implicit_geom.run.storage.saved_runs import load, save
from implicit_geom.scene.options import SimulationOptions
from implicit_geom.scene.scene import Scene


class Trajectory(RecordedRun):
    """What `simulate` returns: `run.time`, `run["egg"].position`, `run.energy`, `run.contacts`, `run.steps`.

    failure   why a run with on_failure="record" ended early, "" where it did not; its last row is the last
              good state
    scene     as it was at the call
    options   duration, step, stepper, ... of the call
    initial   the state at the start
    calls     an account of each call of `simulate` that made the run

    `run["egg"]` is the motion of one body: position, orientation, velocity, angular_velocity. Arrays over
    time have T+1 rows, the first being the start.

    >>> run
    <Trajectory of 'ground', 'egg': 0.5 s in 50 steps, implicit-rattle, 50 converged>
    >>> run["egg"].position[-1].round(3), run.energy.shape
    (array([0. , 0. , 0.3]), (51,))
    """

    @working()
    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the run to an HDF5 file, whole or not at all.

        path    ends with .h5 or .hdf5
        force   replace a file of another kind, too; an earlier run of that name is replaced in any case

        SceneError where the path cannot be written to. SimulationError where the disk is full: the run and
        what was there are kept.

        >>> run.save("egg.h5")
        >>> Trajectory.load("egg.h5")
        <Trajectory of 'ground', 'egg': 0.5 s in 50 steps, implicit-rattle, 50 converged>
        """
        save(self, file_name(path), force=force)

    @working()
    def certify(self, scene: Scene | None = None) -> Certificate:
        """Check the run from its states, impulses and shapes, without the solver's code.

        scene   the one to check against; that of the run if left out. To be passed where loads are functions
                of time and the run was loaded

        Momentum, gaps, complementarity, friction, restitution and geometry; a Certificate, whose `ok` says
        whether all keep their bounds.

        >>> print(run.certify())
        certificate of 50 steps, implicit-rattle: holds
              residual           largest      bound  unit    at t, s
        ok    dynamics         ...
        """
        if scene is not None:
            check_same_bodies(scene, self.scene)
        return certify(self, self.scene if scene is None else scene)

    @staticmethod
    @working()
    def load(path: str | Path) -> Trajectory:
        """Read a run that `save` wrote.

        path   of the file

        It can be continued by `resume`. SceneError where the file is another one, or damaged.
        """
        return load(file_name(path), Trajectory)

    def _options_for(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The options of this run; another kind of integrator has its own default of `impacts`."""
        options = self.options.as_dict()
        after = SimulationOptions(1.0, 1.0, changes.get("stepper", self.options.stepper))
        rattle = [o.switches.integrator.startswith("rattle") for o in (self.options, after)]
        if rattle[0] != rattle[1]:
            options["impacts"] = None
        return options

    @checked_call(CallError, "resume")
    def resume(self, *, duration: float, scene: Scene | None = None, **changes: Any) -> Trajectory:
        """This run continued, the part so far included: bit for bit what one call would have given.

        duration   seconds to go on
        scene      to be passed again where loads are functions of time; also for other loads or friction
        changes    options of `simulate` that shall be different from now on

        >>> run.resume(duration=0.1)
        <Trajectory of 'ground', 'egg': 0.6 s in 60 steps, implicit-rattle, 60 converged>
        """
        known = [field.name for field in fields(SimulationOptions)]
        for key, value in changes.items():
            if key not in (*known, "progress"):
                wrong = f"{key} = {shown(value)}: there is no such argument{hint(key, known)}"
                raise CallError(f"resume: {wrong}")
        progress = changes.pop("progress", None)
        options = SimulationOptions(**{**self._options_for(changes), **changes, "duration": duration})
        return march(Trajectory, scene, options, progress, self)
