"""MuJoCo: an ellipsoid geom on a plane geom, stepped by `mujoco.rollout`, whose loop is in C.

Its contact is soft: on a closed contact the solver asks for the acceleration

    a = -b u - k r,     b = 2 / (d t_c),    k = 1 / (d t_c zeta)^2

(u contact velocity, r penetration, t_c and zeta from `solref`, d from `solimp`), without the term of
the moving contact point, so that the contact slips by an amount of the order t_c. Shorter t_c is better
until the step is unstable, and t_c must shrink with h for the error to fall at all.

Found by measurement on the rolling ellipsoid and the rattleback with MuJoCo 4.0 (position error at the
end; on the ellipsoid unless said otherwise):

- `default` (as shipped: Euler, pyramidal cone, t_c = 0.02 s) has a floor at 10 mm.
- `stiff`: Euler, elliptic cone, t_c = 1.75 h (the automatic limit t_c >= 2 h is switched off), zeta = 1,
  d = 0.9999 (the largest allowed): 0.04 mm at h = 1 ms, in proportion to h. It is the best of t_c / h from
  0.75 to 4, zeta 1 and 2, the two cones and the integrators Euler, implicitfast (0.13 mm, at t_c = 2 h) and
  RK4 (0.23 mm, at five times the cost). With t_c <= h all but RK4 throw the ellipsoid off
  the plane. On the rattleback implicitfast with t_c = 1.5 h is 1.6 times as accurate at h = 0.02 ms.
- `impratio`, the noslip solver, PGS and a tighter tolerance change less than one part in a hundred.
- `lean` is `default` without the parts of a step that these scenes do not use: a tenth less time a step, the
  same motion. Of the solvers Newton, CG and PGS, the integrators, dense and sparse Jacobians and the
  two collision routines, those of `default` are the quickest here.
"""

from __future__ import annotations

import time as clock
from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco import rollout

from implicit_geom import rotation
from implicit_geom.experiments.peers import PeerRun, RollingBody, Stepping, count_steps, of_the_origin

STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS  # time, position, quaternion, velocity, body spin
UNUSED = (
    *("island", "midphase", "sensor", "actuation", "equality", "limit", "frictionloss"),
    *("spring", "damper", "eulerdamp"),
)
TIMES = (1.5, 1.6, 1.75, 2.0)  # t_c / h: below the contact is unstable, above it is softer than need be


@dataclass(frozen=True)
class Setting:
    """Contact and integrator; time_constant is t_c in steps, None for MuJoCo's own contact.

    disabled are flags of MuJoCo's that are switched off.
    """

    integrator: str = "Euler"
    cone: str = "pyramidal"
    time_constant: float | None = None
    damping_ratio: float = 1.0
    impedance: float = 0.9999
    disabled: tuple[str, ...] = ()


def settings() -> dict[str, Setting]:
    """By name; see the top of the file for how they were found."""
    return {
        "default": Setting(),
        "stiff": Setting(cone="elliptic", time_constant=1.75),
        "lean": Setting(disabled=UNUSED),
    }


def variants() -> dict[str, Setting]:
    """Settings among which the quickest for a given error is to be sought, all without unused parts."""
    chosen = [("Euler", cone, t, z) for cone in ("pyramidal", "elliptic") for t in TIMES for z in (0.7, 1.0)]
    chosen += [("implicitfast", "elliptic", t, 1.0) for t in (*TIMES, 3.0)]
    chosen += [
        ("discrete", "pyramidal", 1.25, 1.0),
        ("RK4", "elliptic", 0.75, 1.0),
        ("RK4", "elliptic", 1.0, 1.0),
    ]
    named = {
        f"{integrator}, {cone}, t_c = {t:g} h, zeta = {z:g}": Setting(
            integrator, cone, time_constant=t, damping_ratio=z, disabled=UNUSED
        )
        for integrator, cone, t, z in chosen
    }
    return {"as shipped": Setting(disabled=UNUSED), **named}


def simulate(
    body: RollingBody, *, duration: float, step: float, setting: Setting, record: bool = True
) -> PeerRun:
    """Run the body for `duration` seconds; the states of every step come with the loop, at no cost."""
    count = count_steps(duration, step)
    model, data, start = load(body, step, setting)
    started = clock.perf_counter()
    states, _ = rollout.rollout(model, data, start, nstep=count)
    wall_time = clock.perf_counter() - started
    rows = np.vstack([start, states[0]])
    if not record:
        rows = rows[[0, -1]]
    q = rows[:, 4:8]
    spin = np.einsum("tij,tj->ti", rotation.matrix(q), rows[:, 11:14])
    cost = {"wall_time": wall_time, "steps": count}
    return of_the_origin(body, rows[:, 0], rows[:, 1:4], q, rows[:, 8:11], spin, **cost)


def load(
    body: RollingBody, step: float, setting: Setting
) -> tuple[mujoco.MjModel, mujoco.MjData, np.ndarray]:
    """The model, its data at the start, and that state as `rollout` takes it."""
    model = mujoco.MjModel.from_xml_string(_model(body, step, setting))
    data = mujoco.MjData(model)
    data.qvel[:3] = body.origin_velocity
    data.qvel[3:] = rotation.matrix(body.orientation).T @ body.angular_velocity
    start = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, start, STATE)
    return model, data, start


def stepping(body: RollingBody, step: float, setting: Setting) -> Stepping:
    """Times pieces of a motion by `mj_step`, unrecorded."""
    model, data, start = load(body, step, setting)

    def timed(pieces: np.ndarray) -> np.ndarray:
        mujoco.mj_resetData(model, data)
        mujoco.mj_setState(model, data, start, STATE)
        seconds = np.empty(len(pieces))
        for i, count in enumerate(pieces.tolist()):
            started = clock.perf_counter()
            mujoco.mj_step(model, data, count)
            seconds[i] = clock.perf_counter() - started
        return seconds

    return timed


def _model(body: RollingBody, step: float, s: Setting) -> str:
    J = body.inertia
    contact, off = "", list(s.disabled)
    if s.time_constant is not None:
        contact = f'solref="{_text([s.time_constant * step, s.damping_ratio])}" '
        contact += f'solimp="{_text([s.impedance, s.impedance, 0.001, 0.5, 2])}"'
        off.append("refsafe")  # else t_c is raised to two steps
    flags = "<flag " + " ".join(f'{name}="disable"' for name in off) + "/>" if off else ""
    return f"""
    <mujoco>
      <option timestep="{step!r}" gravity="0 0 {-body.gravity!r}" integrator="{s.integrator}"
              cone="{s.cone}">{flags}</option>
      <default><geom friction="{body.mu!r} 0 0" condim="3" margin="0" {contact}/></default>
      <worldbody>
        <geom type="plane" size="0 0 1"/>
        <body pos="{_text(body.origin)}" quat="{_text(body.orientation)}">
          <freejoint/>
          <inertial pos="{_text(body.com)}" mass="{body.mass!r}"
                    fullinertia="{_text([J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]])}"/>
          <geom type="ellipsoid" size="{_text(body.axes)}"/>
        </body>
      </worldbody>
    </mujoco>"""


def _text(numbers: object) -> str:
    return " ".join(repr(float(number)) for number in np.asarray(numbers))
