"""Patches of two placed shapes as the native engine finds them, and poses that bring two shapes together."""

from __future__ import annotations

import ctypes

import numpy as np

from implicit_geom.engine.library import MOST, address, library
from implicit_geom.engine.native_shapes import HALFSPACE, native_shape
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.geometry.patch_points import Patch
from implicit_geom.model.placed_shape import PlacedShape
from implicit_geom.rotation import matrix
from implicit_geom.shapes.shape import Shape

MODES = ("apart", "touching", "overlapping", "flat")
OVERLAP = 0.05  # of the smaller body's size


class NativePatches:
    """A shape of the engine."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.own = shape, native_shape(shape)
        own, found = self.own, library()
        assert found is not None
        self._library = found
        found.ig_shape_new.restype = ctypes.c_void_p
        found.ig_shape_free.restype = None
        floats = [np.ascontiguousarray(a, float) for a in (own.par, own.inside, own.vertices, own.planes)]
        par, inside, vertices, planes = floats
        ring, start = np.ascontiguousarray(own.ring, np.int32), np.ascontiguousarray(own.start, np.int32)
        self._shape = ctypes.c_void_p(
            found.ig_shape_new(
                ctypes.c_int(own.kind), ctypes.c_int(own.dim), address(par),
                ctypes.c_double(own.size if np.isfinite(own.size) else 0.0), address(inside),
                ctypes.c_int(len(vertices)), address(vertices), ctypes.c_int(len(planes)), address(planes),
                address(ring), address(start),
            )
        )  # fmt: skip

    def __del__(self) -> None:
        self._library.ig_shape_free(self._shape)

    def _pose(self, x: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pose of the primitive."""
        dim = self.own.dim
        at, turn = np.zeros(3), np.eye(3)
        at[:dim], turn[:dim, :dim] = x, R
        return np.ascontiguousarray(at + turn @ self.own.o), np.ascontiguousarray(turn @ self.own.R)

    def patch(
        self, x: np.ndarray, R: np.ndarray, other: NativePatches, y: np.ndarray, S: np.ndarray
    ) -> Patch:
        """The patch with another shape; fails where the engine is not certain."""
        count, tag, fixed = (np.zeros(n, np.int32) for n in (1, MOST, MOST))
        n, gap, a, b = np.zeros(3), np.zeros(MOST), np.zeros((MOST, 3)), np.zeros((MOST, 3))
        given = [*self._pose(x, R), *other._pose(y, S)]
        status = self._library.ig_patch(
            self._shape, address(given[0]), address(given[1]), other._shape, address(given[2]),
            address(given[3]), *(address(array) for array in (count, n, a, b, gap, tag, fixed)),
        )  # fmt: skip
        assert status == 0
        k, dim = int(count[0]), self.own.dim
        assert len(set(tag[:k].tolist())) == k  # (a tag names one point)
        return Patch(n[:dim], a[:k, :dim], b[:k, :dim], gap[:k])


def turn(rng: np.random.Generator, dim: int) -> np.ndarray:
    """Any rotation."""
    if dim == 2:
        angle = rng.uniform(0, 2 * np.pi)
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    q = rng.normal(size=4)
    return np.asarray(matrix(q / np.linalg.norm(q)))


def quarters(rng: np.random.Generator, dim: int) -> np.ndarray:
    """Turns by right angles."""
    while True:
        P = np.eye(dim)[rng.permutation(dim)] * rng.choice([-1, 1], dim)[:, None]
        if np.linalg.det(P) > 0:
            return P


def poses(
    a: Shape, b: Shape, mode: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x, R of a and y, S of b; `flat`: axes parallel, so that faces and edges may lie on each other."""
    dim, size = a.dim, b.size if native_shape(a).kind == HALFSPACE else min(a.size, b.size)
    wanted = {
        "apart": size * 10 ** rng.uniform(-3, 0.5),
        "touching": 0.0,
        "overlapping": -OVERLAP * size,
        "flat": -1e-6 * size * rng.integers(2),
    }[mode]
    R, x = turn(rng, dim), size * rng.normal(size=dim)
    S = R @ quarters(rng, dim) if mode == "flat" else turn(rng, dim)
    if native_shape(a).kind == HALFSPACE:
        n = R @ np.asarray(a.normal)
        if mode == "flat":
            # (an axis of b along the normal)
            axis = np.eye(dim)[rng.integers(dim)] * rng.choice([-1, 1])
            S = aligned(axis, n)
        low = PlacedShape(b, np.zeros(dim), S, np.zeros(dim)).support(-n[None])[0] @ n
        return x, R, x + (float(a.offset) + wanted - low) * n, S
    if mode == "flat":
        u = R[:, rng.integers(dim)] * rng.choice([-1, 1])
        y = x + 5 * (a.size + b.size) * u
        one, two = (PlacedShape(s, *p, np.zeros(dim)) for s, p in ((a, (x, R)), (b, (y, S))))
        return x, R, y + (wanted - u @ (two.support(-u[None])[0] - one.support(u[None])[0])) * u, S
    u = rng.normal(size=dim)
    y = x + 2.5 * (a.size + b.size) * u / np.linalg.norm(u)
    one, two = (PlacedShape(s, *p, np.zeros(dim)) for s, p in ((a, (x, R)), (b, (y, S))))
    closest = find_closest_points(one, two).points
    # (moved along the normal the closest points stay what they are)
    return x, R, y + (wanted - closest.gap) * closest.normal, S


def aligned(axis: np.ndarray, n: np.ndarray) -> np.ndarray:
    """A rotation that brings `axis` to n."""
    dim = len(n)
    H = np.eye(dim) - 2 * np.outer(axis - n, axis - n) / max(np.sum((axis - n) ** 2), 1e-30)
    if np.linalg.det(H) > 0:
        return np.asarray(H)
    # a reflection more, across a plane that holds n
    across = np.linalg.svd(n[None])[2][-1]
    return np.asarray((np.eye(dim) - 2 * np.outer(across, across)) @ H)
