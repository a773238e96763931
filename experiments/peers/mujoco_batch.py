"""MuJoCo: many ellipsoids at once, by the threads of `mujoco.rollout`.

Bodies that differ in friction and start share one compiled model: copies of it get their own friction,
as `rollout` takes one model a body. Its pool of threads is made beforehand; one thread is the calling one.
"""

from __future__ import annotations

import copy
import time as clock
from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco import rollout

from implicit_geom import rotation
from implicit_geom.experiments.peers import RollingBody
from implicit_geom.experiments.peers.mujoco_peer import STATE, Setting, load


@dataclass(frozen=True)
class BatchRun:
    """Positions of the ellipsoids' centres (B, T, 3) after every step, and seconds of the loop and in all."""

    position: np.ndarray
    wall_time: float
    total: float


def simulate_batch(
    bodies: list[RollingBody], *, count: int, step: float, setting: Setting, threads: int
) -> BatchRun:
    """`count` steps of every body; the states of all steps are kept."""
    began = clock.perf_counter()
    model, _, first = load(bodies[0], step, setting)
    models, starts = [], np.tile(first, (len(bodies), 1))
    for body, start in zip(bodies, starts):
        its_own = copy.copy(model)
        its_own.geom_friction[:, 0] = body.mu
        models.append(its_own)
        start[1:4], start[4:8], start[8:11] = body.origin, body.orientation, body.origin_velocity
        start[11:14] = rotation.matrix(body.orientation).T @ body.angular_velocity
    data = [mujoco.MjData(model) for _ in range(threads)]
    states = np.empty((len(bodies), count, mujoco.mj_stateSize(model, STATE)))
    with rollout.Rollout(nthread=threads if threads > 1 else 0) as pool:
        started = clock.perf_counter()
        pool.rollout(models, data, starts, nstep=count, state=states)
        wall_time = clock.perf_counter() - started
    position = states[:, :, 1:4].copy()
    return BatchRun(position, wall_time, clock.perf_counter() - began)
