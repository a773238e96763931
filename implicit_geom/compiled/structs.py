"""Structs of numbers that a compiled step keeps of a body and of a pair: named fields of one vector each."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from implicit_geom.equations.unknowns import PairKind, Symbols


class Struct:
    """Named fields of a vector: `at` says where each is."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.at: dict[str, slice] = {}
        start = 0
        for name, size in sizes.items():
            self.at[name] = slice(start, start + size)
            start += size
        self.size = start

    def symbol(self, name: str) -> StructSymbol:
        return StructSymbol(self, ca.SX.sym(name, self.size))

    def join(self, **values: ca.SX) -> ca.SX:
        """The vector from its fields, given by name."""
        fields = []
        for name, where in self.at.items():
            value = ca.densify(ca.SX(values[name]))
            if value.numel() != where.stop - where.start:
                raise ValueError(f"{name} has {value.numel()} numbers, not {where.stop - where.start}")
            fields.append(ca.vec(value))
        if set(values) != set(self.at):
            raise ValueError(f"fields {sorted(set(values) ^ set(self.at))} are missing or unknown")
        return ca.vertcat(*fields)


class StructSymbol:
    """A symbol of a struct: `s["x"]` is an expression."""

    def __init__(self, struct: Struct, value: ca.SX) -> None:
        self.struct, self.value = struct, value

    def __getitem__(self, name: str) -> ca.SX:
        where = self.struct.at[name]
        return self.value[where] if where.stop > where.start else ca.SX(0, 1)

    def matrix(self, name: str) -> ca.SX:
        flat = self[name]
        side = round(flat.numel() ** 0.5)
        return ca.reshape(flat, side, side)


def spins(dim: int) -> int:
    return 3 if dim == 3 else 1


def state(dim: int) -> Struct:
    """Pose and velocity of a body."""
    return Struct({"x": dim, "q": 4 if dim == 3 else 1, "v": dim, "w": spins(dim)})


def constants(dim: int) -> Struct:
    """What no step changes of a body; masses are zero for a fixed one."""
    velocities = dim + spins(dim)
    return Struct(
        {
            "mass": 1,
            "inverse_mass": 1,
            "inertia": spins(dim) ** 2,  # body axes, column-major
            "inverse_inertia": spins(dim) ** 2,
            "root": spins(dim) ** 2,  # (m J)^(-1/2)
            "size": 1,
            "reach": 1,
            "load": velocities,  # force and torque, gravity included
            "gravity": dim,
            "up": dim,
            "lowest": 1,  # height of the centre in the lowest configuration, where it is known
            "lowest_known": 1,
            "depth": 1,
        }
    )


def derived(dim: int) -> Struct:
    """What a solve takes from a body's state at its start; zero for a fixed body but for R."""
    return Struct(
        {
            "R": dim * dim,
            "speed": 1,
            "pulled": 1,
            "weight": 1 + spins(dim) ** 2,
            "inverse_inertia": spins(dim) ** 2,  # world axes
        }
    )


def pair_basics() -> Struct:
    """The first constants of a pair, which have the same places for all kinds."""
    return Struct(
        {
            "L": 1,
            "sign": 1,  # -1 where the scene's order is (second, first)
            "flat": 1,  # 0 where the contact is on a curved surface of a fixed body
        }
    )


def pair_constants(kind: PairKind) -> Struct:
    """What no step changes of a pair."""
    dim = kind.first.dim
    return Struct(
        {
            **pair_basics().sizes,
            "mu": 1,
            "e": len(kind.components),
            "com1": dim,
            "com2": dim,
            "theta1": kind.first.values.size,
            "theta2": kind.second.values.size,
            "restitution": 1,
            "thin": 1,  # the smaller thickness of the two bodies
            "tolerance": 1,
            "multiplier_factor": 1,  # see `over_planes.multiplier_factor`, where the support map is known
        }
    )


def warm(kind: PairKind) -> Struct:
    """A pair's unknowns at the end of the last solve, see `model.contact_group.WarmStart`; and its normal."""
    dim = kind.first.dim
    return Struct({"u": kind.layout.size, "direction": dim, "m_c": 1, "h": 1, "n": dim})


def start(kind: PairKind) -> Struct:
    """A pair at the start of a solve."""
    dim = kind.first.dim
    return Struct({"gap": 1, "normal_velocity": 1, "slip": 1, "touching": 1, "r2": dim, "n": dim, "lag": 1})


def end(kind: PairKind) -> Struct:
    """A pair at the end of stage 1, see `contact.rattle_ncp.EndContact`."""
    dim, layout = kind.first.dim, kind.layout
    vectors = dict.fromkeys(("r1", "r2", "n", "t", "o"), dim)
    return Struct(
        {
            **vectors,
            "gap": 1,
            "multipliers": layout.first + layout.second,
            "impulses": layout.size - layout.geometry,
            "m_c": 1,
            "sense": 1,
            "active": 1,  # closed or touching: takes part in the velocity stage
        }
    )


def record(dim: int) -> Struct:
    """A contact of a solve in the columns of `model.solve_arrays.contact_dtype`, flags as 0 or 1."""
    vectors = dict.fromkeys(("point", "normal", "tangent", "binormal", "end_point"), dim)
    numbers = ("gap", "p_n", "p_t", "p_o", "p_r", "v_t", "v_o", "v_r", "impact", "lagged", "slid", "closed")
    return Struct({**vectors, **dict.fromkeys(numbers, 1)})


def parameters(kind: PairKind) -> Struct:
    """The parameter vector of a kind's equations."""
    return Struct({name: where.stop - where.start for name, where in Symbols(kind).at.items()})
