"""Drake: point contact of an ellipsoid with a half-space, in discrete time, stepped in C++.

Its contact is a stiff spring with regularised friction: a sticking contact creeps at a speed of the order
of the stiction tolerance v_s, which must shrink with h for the error to fall at all.

Found by measurement on the rolling ellipsoid and the rattleback with Drake 1.51 (position error at the
end, on the ellipsoid unless said otherwise):

- `default` (as shipped: the approximation `lagged`, stiffness from the weight, v_s = 1 mm/s) has a floor
  at 4 mm.
- `stiff`: `tamsi`, stiffness 1e8 N/m, no dissipation, v_s = 0.05 h: 0.05 mm at h = 1 ms, in proportion to
  h. Of v_s / h from 0.003 to 0.2 (in m/s^2), stiffness 1e6 to 1e10 N/m and dissipation 0 to 100 s/m the
  best; at 0.003 the solver fails at times.
- `lagged` with the same contact is as accurate (0.04 mm), at four to six times the cost; `similar` too,
  but lost its way at h = 10 ms and 1e8 N/m; `sap` is seven times less accurate (its default dissipation).
  Later versions of Drake are to drop `tamsi`; `lagged` then takes its place.
- On the rattleback the stiff ones are within a fifth of each other.
- Continuous time with the error-controlled integrator `cenic` takes as long for the same error;
  `radau3` and `runge_kutta3` take ten times as long and more.
"""

from __future__ import annotations

import logging
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from pydrake.geometry import AddContactMaterial, Ellipsoid, HalfSpace, ProximityProperties
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.math import SpatialVelocity
from pydrake.multibody.plant import (
    AddMultibodyPlantSceneGraph,
    ContactModel,
    CoulombFriction,
    DiscreteContactApproximation,
)
from pydrake.multibody.tree import SpatialInertia, UnitInertia
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from implicit_geom import rotation
from implicit_geom.experiments.peers import PeerRun, RollingBody, Stepping, count_steps, of_the_origin

APPROXIMATIONS = {"tamsi": "kTamsi", "sap": "kSap", "lagged": "kLagged", "similar": "kSimilar"}
STICTION = 1e-3  # m/s, Drake's own


@dataclass(frozen=True)
class Setting:
    """The contact; stiffness in N/m and dissipation in s/m, None for Drake's own.

    creep is v_s / h in m/s^2, None for Drake's own v_s.
    """

    approximation: str = "lagged"
    stiffness: float | None = None
    dissipation: float | None = None
    creep: float | None = None


def settings() -> dict[str, Setting]:
    """By name; see the top of the file for how they were found."""
    best = "tamsi" if hasattr(DiscreteContactApproximation, APPROXIMATIONS["tamsi"]) else "lagged"
    return {"default": Setting(), "stiff": Setting(best, 1e8, 0.0, 0.05)}


def variants() -> dict[str, Setting]:
    """Settings among which the quickest for a given error is to be sought."""
    best = settings()["stiff"].approximation
    chosen = [(best, 1e8, v) for v in (0.02, 0.05, 0.1)] + [(best, k, 0.05) for k in (1e6, 1e10)]
    chosen += [("lagged", 1e8, 0.05)] if best != "lagged" else []
    named = {f"{a}, {k:.0e} N/m, v_s = {v:g} h": Setting(a, k, 0.0, v) for a, k, v in chosen}
    return {"as shipped": Setting(), **named}


def simulate(
    body: RollingBody, *, duration: float, step: float, setting: Setting, record: bool = True
) -> PeerRun:
    """Run the body for `duration` seconds; where recorded, a second run gathers the states."""
    count = count_steps(duration, step)
    with _quiet():
        run = _Run(body, step, setting)
    rows = [run.start()]
    started = clock.perf_counter()
    run.simulator.AdvanceTo(duration)
    wall_time = clock.perf_counter() - started
    if record:
        rows = [run.start(), *(run.advance(k * step) for k in range(1, count + 1))]
    else:
        rows.append(run.state())
    y = np.array(rows)
    time = step * np.arange(count + 1) if record else np.array([0, duration])
    cost = {"wall_time": wall_time, "steps": count}
    return of_the_origin(body, time, y[:, 4:7], y[:, :4], y[:, 10:13], y[:, 7:10], **cost)


def stepping(body: RollingBody, step: float, setting: Setting) -> Stepping:
    """Times pieces of a motion by `Simulator.AdvanceTo`, unrecorded."""
    with _quiet():
        run = _Run(body, step, setting)

    def timed(pieces: np.ndarray) -> np.ndarray:
        run.start()
        seconds = np.empty(len(pieces))
        for i, end in enumerate(np.cumsum(pieces).tolist()):
            started = clock.perf_counter()
            run.simulator.AdvanceTo(end * step)
            seconds[i] = clock.perf_counter() - started
        return seconds

    return timed


class _Run:
    """A plant with the body, ready to be stepped."""

    def __init__(self, body: RollingBody, step: float, setting: Setting) -> None:
        self.body = body
        builder = DiagramBuilder()
        self.plant, _ = AddMultibodyPlantSceneGraph(builder, time_step=step)
        plant = self.plant
        plant.set_contact_model(ContactModel.kPoint)
        plant.set_discrete_contact_approximation(
            getattr(DiscreteContactApproximation, APPROXIMATIONS[setting.approximation])
        )
        plant.set_stiction_tolerance(STICTION if setting.creep is None else setting.creep * step)
        plant.mutable_gravity_field().set_gravity_vector([0, 0, -body.gravity])
        self.link = plant.AddRigidBody("body", _inertia(body))
        material = ProximityProperties()
        AddContactMaterial(
            dissipation=setting.dissipation,
            point_stiffness=setting.stiffness,
            friction=CoulombFriction(body.mu, body.mu),
            properties=material,
        )
        identity = RigidTransform()
        plant.RegisterCollisionGeometry(self.link, identity, Ellipsoid(*body.axes), "body", material)
        plant.RegisterCollisionGeometry(plant.world_body(), identity, HalfSpace(), "plane", material)
        plant.Finalize()
        self.simulator = Simulator(builder.Build())
        self.context = self.plant.GetMyMutableContextFromRoot(self.simulator.get_mutable_context())

    def start(self) -> np.ndarray:
        """Set the state at time zero; the state."""
        body = self.body
        self.simulator.get_mutable_context().SetTime(0.0)
        R = RotationMatrix(rotation.matrix(body.orientation))
        self.plant.SetFreeBodyPose(self.context, self.link, RigidTransform(R, body.origin))
        self.plant.SetFreeBodySpatialVelocity(
            self.context, self.link, SpatialVelocity(body.angular_velocity, body.origin_velocity)
        )
        self.simulator.Initialize()
        return self.state()

    def advance(self, time: float) -> np.ndarray:
        self.simulator.AdvanceTo(time)
        return self.state()

    def state(self) -> np.ndarray:
        """Quaternion, position, spin and velocity of the ellipsoid's centre, world frame."""
        return self.plant.GetPositionsAndVelocities(self.context).copy()


def _inertia(body: RollingBody) -> SpatialInertia:
    """About the ellipsoid's centre, as Drake wants it: J + m (c.c I - c c^T)."""
    c = body.com
    J = body.inertia + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
    unit = J / body.mass
    return SpatialInertia(
        body.mass, c, UnitInertia(unit[0, 0], unit[1, 1], unit[2, 2], unit[0, 1], unit[0, 2], unit[1, 2])
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Without Drake's notes on TAMSI's age and on half-spaces in deformable contact, which is not used."""
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
