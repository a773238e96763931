"""A quadric over fixed half-spaces, in many states at once: closest points in closed form [C07, eq. 9].

The rows are states, of one body each time, whose size, mass and centre of mass may differ from row to row. A
row's numbers are the same to the last bit whatever rows stand beside it: every sum is written out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom import rotation
from implicit_geom.equations.constraints import is_halfspace
from implicit_geom.equations.tangent import references
from implicit_geom.equations.unknowns import PairKind
from implicit_geom.geometry.broad_phase import AHEAD
from implicit_geom.model.contact_group import WarmStart
from implicit_geom.model.model import Model, State
from implicit_geom.model.placed_shape import halfspace_plane
from implicit_geom.shapes.shape import Shape

QUADRICS = ("ellipsoid", "sphere", "ellipse", "disc")


def known_in_closed_form(kind: PairKind) -> bool:
    """Whether the closest points of a kind of pair are: a quadric that moves over a fixed half-space."""
    return is_halfspace(kind.first) and kind.moves == (False, True) and kind.second.structure in QUADRICS


def only_over_planes(model: Model) -> bool:
    """Whether all that moves is one quadric, over half-spaces; of one at least."""
    if model.moving.size != 1 or not len(model.pairs):
        return False
    return all(known_in_closed_form(pair.template.kind) for pair in model.pairs)


@dataclass(frozen=True)
class MovingBody:
    """The body that moves, row by row; m and kg.

    x, q, v, w   (n, ...) its state
    com          (n, dim) shape's frame
    axes         (n, dim) semi-axes
    length       (n,) half of the bounding box's longest edge
    reach        (n,) radius of a ball about the centre of mass that holds it
    pull         (n,) what its loads add to its speed in a second, m/s^2
    """

    x: np.ndarray
    q: np.ndarray
    v: np.ndarray
    w: np.ndarray
    com: np.ndarray
    axes: np.ndarray
    length: np.ndarray
    reach: np.ndarray
    pull: np.ndarray

    @staticmethod
    def of(model: Model, state: State, loads: np.ndarray) -> MovingBody:
        """The one of a model, as a single row."""
        b = int(model.moving[0])
        rows = {part: getattr(state, part)[b][None] for part in ("x", "q", "v", "w")}
        shape, size = model.bodies[b].shape, model.length[b : b + 1]
        pull = length_of(loads[b : b + 1, : model.dim]) / model.mass[b : b + 1]
        return MovingBody(
            **rows,
            com=model.com[b][None],
            axes=semi_axes(shape)[None],
            length=size,
            reach=model.reach[b : b + 1],
            pull=pull,
        )


@dataclass(frozen=True)
class OverPlanes:
    """Gaps and closest points of rows of a body over the P half-spaces of a scene.

    n          (P, dim) outward normals of the half-spaces, world frame
    offset     (P,) m
    gap        (rows, P) m
    point      (rows, P, dim) the body's closest points, from its centre of mass, world axes, m
    k          (rows, P) the multiplier of the body's surface
    """

    n: np.ndarray
    offset: np.ndarray
    body: MovingBody
    gap: np.ndarray
    point: np.ndarray
    k: np.ndarray

    @staticmethod
    def of(model: Model, state: State, body: MovingBody) -> OverPlanes:
        """Of all pairs of a model; `state` is any that has its fixed bodies in place."""
        planes = [halfspace_plane(model.placed(state, pair.pieces[0])) for pair in model.pairs]
        dim = model.dim
        n = np.array([n for n, _ in planes]).reshape(len(planes), dim)
        offset = np.array([offset for _, offset in planes])
        R = rotation.matrix(body.q) if dim == 3 else _turned(body.q)
        rows = (len(body.x), len(planes))
        scaled, local, world = (np.zeros((*rows, dim)) for _ in range(3))
        for i in range(dim):
            for j in range(dim):
                scaled[..., i] -= R[:, None, j, i] * n[None, :, j]
            scaled[..., i] *= body.axes[:, None, i]
        reach = length_of(scaled)
        for i in range(dim):
            local[..., i] = body.axes[:, None, i] * scaled[..., i] / reach - body.com[:, None, i]
        gap = np.zeros(rows)
        for i in range(dim):
            for j in range(dim):
                world[..., i] += R[:, None, i, j] * local[..., j]
            gap += n[None, :, i] * (body.x[:, None, i] + world[..., i])
        return OverPlanes(n, offset, body, gap - offset, world, reach / geometric_mean(body.axes)[:, None])

    def ahead(self, h: float) -> np.ndarray:
        """(rows, P) whether balls and planes are not kept apart for the next few steps."""
        b = self.body
        way = AHEAD * (h * (length_of(b.v) + length_of(b.w) * b.reach) + h * h * b.pull)
        height = np.zeros(self.gap.shape)
        for i in range(self.n.shape[1]):
            height += self.n[None, :, i] * b.x[:, None, i]
        return ~(height - self.offset - b.reach[:, None] > way[:, None])

    def unknowns(self, model: Model, pair: int) -> np.ndarray:
        """(rows, unknowns) of a pair at its closest points, without impulses."""
        layout = model.pairs[pair].kernel.layout
        out = np.zeros((len(self.gap), layout.size))
        out[:, layout.at["r"]] = self.point[:, pair] / self.body.length[:, None]
        out[:, layout.at["k"]] = self.k[:, pair, None]
        return out

    def direction(self, model: Model, pair: int) -> np.ndarray:
        """The reference of a pair's tangent: given, or a world axis across the normal."""
        law = model.pairs[pair].law
        n = self.n[pair][None]
        return references(n, np.zeros_like(n))[0] if law.direction is None else np.array(law.direction)

    def warm_start(self, model: Model, pair: int) -> WarmStart:
        """Of the first row."""
        return WarmStart(self.unknowns(model, pair)[0], self.direction(model, pair), 1.0, 1.0)


def semi_axes(shape: Shape) -> np.ndarray:
    """(dim,) of a quadric, m."""
    return np.asarray(shape.axes)  # type: ignore[attr-defined]


def geometric_mean(axes: np.ndarray) -> np.ndarray:
    """(n,) of rows of semi-axes: the scale of their equations."""
    product = axes[:, 0]
    for i in range(1, axes.shape[1]):
        product = product * axes[:, i]
    return np.asarray(product ** (1.0 / axes.shape[1]))


def multiplier_factor(shape: Shape) -> float:
    """k over |a d|, d a direction in the shape's frame: one over the scale of its equation, in 1/m."""
    return float(1 / geometric_mean(semi_axes(shape)[None])[0])


def length_of(v: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    total = v[..., 0] * v[..., 0]
    for i in range(1, v.shape[-1]):
        total = total + v[..., i] * v[..., i]
    return np.sqrt(total)


def _turned(angle: np.ndarray) -> np.ndarray:
    """(n, 2, 2)"""
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([np.stack([c, -s], axis=-1), np.stack([s, c], axis=-1)], axis=-2)
