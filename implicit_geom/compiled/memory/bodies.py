"""States and constants of all bodies in the memory of compiled code."""

from __future__ import annotations

import numpy as np

from implicit_geom.compiled import structs
from implicit_geom.compiled.memory.arrays import LaneArrays
from implicit_geom.equations.unknowns import flat
from implicit_geom.model.energy import EnergyScale
from implicit_geom.model.model import Model, State


def inverse_root(mass: np.ndarray, J: np.ndarray) -> np.ndarray:
    """(m J)^(-1/2) of rows of masses (n,) and inertias (n, s, s).

    (Sums are written out: a row is the same to the last bit whatever stands beside it.)
    """
    values, vectors = np.linalg.eigh(J)
    out = np.zeros(J.shape)
    for k in range(J.shape[1]):
        column = vectors[:, :, k]
        out += column[:, :, None] * column[:, None, :] / np.sqrt(mass * values[:, k])[:, None, None]
    return out


class BodyArrays:
    """Arrays (bodies, numbers, lanes) of the structs of a body, see `structs`."""

    def __init__(self, arrays: LaneArrays, dim: int, count: int) -> None:
        self.dim = dim
        self.state_struct, self.constant_struct = structs.state(dim), structs.constants(dim)
        self.state = arrays.numbers(count, self.state_struct.size)
        self.next, self.saved = (arrays.numbers(count, self.state_struct.size) for _ in range(2))
        self.constants = arrays.numbers(count, self.constant_struct.size)
        derived = structs.derived(dim)
        self.derived, self.end_derived = (arrays.numbers(count, derived.size) for _ in range(2))

    def load(self, lane: int, model: Model, scale: EnergyScale | None) -> None:
        """What no step changes; `scale` is known for steppers that guard their energy."""
        self._fill_constants(lane, model, scale)
        state, at = model.initial_state(), structs.derived(self.dim).at["R"]
        for b in set(range(len(model.bodies))) - set(model.moving.tolist()):
            for target in (self.derived, self.end_derived):
                target[b, at, lane] = flat(state.R[b])

    def _fill_constants(self, lane: int, model: Model, scale: EnergyScale | None) -> None:
        loads = model.loads(0.0)
        at = self.constant_struct.at
        for b in range(len(model.bodies)):
            own = self.constants[b, :, lane]
            reach = model.reach[b]
            own[at["reach"]] = reach if np.isfinite(reach) else 0.0
            own[at["size"]] = model.length[b]
            if b not in model.moving:
                continue
            mass, J = model.mass[b], model.inertia[b]
            own[at["mass"]], own[at["inverse_mass"]] = mass, 1 / mass
            own[at["inertia"]], own[at["inverse_inertia"]] = flat(J), flat(np.linalg.inv(J))
            own[at["root"]] = flat(inverse_root(np.array([mass]), J[None])[0])
            own[at["load"]] = loads[b]
            own[at["gravity"]] = model.scene.gravity
            if scale is None:
                continue
            own[at["depth"]] = scale.depth[b]
            if scale.strength > 0:
                own[at["up"]] = scale.up
                known = np.isfinite(scale.lowest[b])
                own[at["lowest_known"]] = known
                own[at["lowest"]] = scale.lowest[b] if known else 0.0

    def spread(self) -> None:
        """Give all lanes the scene of the first one."""
        for numbers in (self.constants, self.derived, self.end_derived):
            numbers[..., 1:] = numbers[..., :1]

    def put(self, lane: int, state: State) -> None:
        """Set a lane's state."""
        at = self.state_struct.at
        own = self.state[:, :, lane]
        own[:, at["x"]], own[:, at["v"]], own[:, at["w"]] = state.x, state.v, state.w
        own[:, at["q"]] = state.q if self.dim == 3 else state.q[:, None]
        self.next[:, :, lane] = own
