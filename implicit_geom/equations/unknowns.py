"""The unknowns and the parameters of one contact between two bodies, and where each sits.

Unknowns (all index arithmetic is in `UnknownLayout`):

    r    closest point on the second body (on the first, where no half-space is involved), from
         that body's centre of mass, world axes, over the pair's length L
    D    gap over step, m/s            } absent against a half-space,
    n    common unit normal            } whose normal is known
    l, k multipliers of the two bodies' constraints
    P_n  normal impulse over the effective mass m_c, m/s
    S    scaled friction impulse E^-1 (p_t, p_o, p_r) / m_c, m/s; components with e = 0 are left out
    sigma  multiplier of the friction ellipsoid [C07, eq. 5], in its form "fritz-john" alone

A kind of pair has its equations in three forms (`scheme`), see `equations.contact_ncp`: the whole
implicit Euler step, and the two stages of the RATTLE step. Rows are dimensionless: velocities over
U, lengths over h U, where U is the pair's speed scale. Row i belongs to unknown i, so that a small
multiple of the identity may be added to the Jacobian.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from implicit_geom.equations.constraints import is_halfspace, multiplier_count
from implicit_geom.process.lazy import cached_property
from implicit_geom.shapes.shape import Shape


@dataclass(frozen=True)
class UnknownLayout:
    """Where each unknown of a contact sits."""

    dim: int
    known_normal: bool
    free_point: bool  # the contact point is unknown
    first: int  # multipliers of the first body
    second: int
    components: int  # friction components
    slack: int  # 1 where the friction residual carries its own multiplier sigma

    @cached_property
    def at(self) -> dict[str, slice]:
        sizes = {
            "r": self.dim if self.free_point else 0,
            "D": 0 if self.known_normal else 1,
            "n": 0 if self.known_normal else self.dim,
            "l": self.first,
            "k": self.second,
            "P_n": 1,
            "S": self.components,
            "sigma": self.slack,
        }
        slices, start = {}, 0
        for name, size in sizes.items():
            slices[name] = slice(start, start + size)
            start += size
        return slices

    @property
    def geometry(self) -> int:
        """The number of geometry unknowns; they come first."""
        return self.at["P_n"].start

    @property
    def size(self) -> int:
        return self.at["sigma"].stop


@dataclass(frozen=True)
class PairKind:
    """What distinguishes the equations of one contact from another's; everything else is a parameter."""

    first: Shape
    second: Shape
    components: tuple[str, ...]  # of "t", "o", "r"
    friction: str = "projection"
    moves: tuple[bool, bool] = (True, True)
    frame: str = "free"  # where the tangent's direction is attached: free, world, first, second
    isotropic: bool = True  # friction is the same in all tangential directions
    scheme: str = "euler"  # euler, position, velocity

    @property
    def key(self) -> Hashable:
        shapes = (self.first.structure, self.second.structure)
        sizes = (self.first.values.size, self.second.values.size)
        laws = (self.components, self.friction, self.moves, self.frame, self.isotropic, self.scheme)
        return (self.first.dim, shapes, sizes, *laws)

    @cached_property
    def patches(self) -> bool:
        """Whether the two bodies may touch along a line or a face."""
        return not (self.first.strictly_convex or self.second.strictly_convex)

    @cached_property
    def layout(self) -> UnknownLayout:
        half = is_halfspace(self.first)
        fixed_point = self.scheme == "velocity" and not self.patches
        return UnknownLayout(
            dim=self.first.dim,
            known_normal=half or self.scheme == "velocity",
            free_point=not fixed_point,
            first=0 if half or fixed_point else multiplier_count(self.first),
            second=0 if fixed_point else multiplier_count(self.second),
            components=len(self.components),
            slack=1 if self.friction == "fritz-john" and self.components else 0,
        )


class Symbols:
    """The inputs of a contact's equations, by name; `at` says where each sits in the parameter vector."""

    def __init__(self, kind: PairKind) -> None:
        dim = kind.first.dim
        velocities = dim + (3 if dim == 3 else 1)
        self.nu = [ca.SX.sym(f"nu_{i}", velocities) for i in (1, 2)]
        self.u = ca.SX.sym("u", kind.layout.size)
        rotations = velocities - dim
        sizes = {
            "h": 1,  # step, s; negative where a step runs backwards
            "eps": 1,  # smoothing, dimensionless
            "L": 1,  # length scale, m
            "c": 1,  # weight of a multiplier against its constraint in the natural maps, m
            "U": 1,  # speed scale, m/s
            "m_c": 1,  # effective mass, kg; has the sign of h
            "mu": 1,
            "e": len(kind.components),
            "direction": dim,  # reference for the tangent t
            "offset": dim,  # from the first to the second centre of mass at the start, m
            "R1": dim * dim,  # orientations at the start, column-major
            "R2": dim * dim,
            "com1": dim,  # centre of mass in the shape's frame
            "com2": dim,
            "weight1": 1 + rotations**2,  # 1/(m U) and the angular rows' scaling over U
            "weight2": 1 + rotations**2,
            "theta1": kind.first.values.size,
            "theta2": kind.second.values.size,
        }
        if kind.scheme != "euler":
            sizes |= {
                "r1": dim,  # contact point at the start from the centres of mass, world axes, m
                "r2": dim,
                "n": dim,  # normal at the start
                "B": dim * dim,  # projector on the directions in which the contact is flat there
            }
        if kind.scheme == "position":
            sizes |= {
                "start1": velocities,  # of the two bodies at the start
                "start2": velocities,
                "lag": 1,  # 1: friction opposes the slip at the start, 0: that of the stage
            }
        if kind.scheme == "velocity":
            sizes |= {
                "t": dim,  # tangents
                "o": dim,
                "sense": 1,  # -1 for a contact that sticks in a step that runs backwards
                "bounce": 1,  # coefficient of restitution times normal velocity of impact, <= 0, m/s
            }
        self.at: dict[str, slice] = {}
        start = 0
        for name, size in sizes.items():
            self.at[name] = slice(start, start + size)
            start += size
        self.parameters = ca.SX.sym("p", start)

    def __getitem__(self, name: str) -> ca.SX:
        where = self.at[name]
        return self.parameters[where] if where.stop > where.start else ca.SX(0, 1)

    def matrix(self, name: str) -> ca.SX:
        """A square matrix among the parameters."""
        flat_form = self[name]
        side = round(flat_form.numel() ** 0.5)
        return ca.reshape(flat_form, side, side)


def flat(R: np.ndarray) -> np.ndarray:
    """Matrices in the order the parameter vector expects (column-major); (..., n, n) -> (..., n * n)."""
    R = np.asarray(R, float)
    return np.swapaxes(R, -1, -2).reshape(*R.shape[:-2], -1)
