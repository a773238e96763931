"""Patches of the native engine against those of `geometry.patch_points`, for all pairs of kinds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
import pytest
from native_patches import MODES, NativePatches, poses

from implicit_geom import shapes
from implicit_geom.engine.library import library
from implicit_geom.geometry.distance import find_closest_points
from implicit_geom.geometry.patch_points import patch_points
from implicit_geom.model.placed_shape import PlacedShape
from implicit_geom.shapes.shape import Shape

pytestmark = pytest.mark.skipif(library() is None, reason="installed without the native engine")

GAP = 2e-12  # of the smaller body's size
NORMAL, POINT = 1e-7, 1e-7
POSES = 3  # of each pair of kinds in each mode

CORNERS = [(1, 0.2, 0.1), (-0.8, 0.3, 0.2), (0.1, 1, -0.3), (0.2, -0.9, 0.1), (0, 0.1, 0.9), (0.1, 0, -0.8)]
SPATIAL: dict[str, Callable[[float], Shape]] = {
    "half-space": lambda f: shapes.halfspace((1, 2, 2), 0.3 * f),
    "sphere": lambda f: shapes.sphere(f),
    "capsule": lambda f: shapes.capsule(0.4 * f, 1.1 * f),
    "ellipsoid": lambda f: shapes.ellipsoid(f, 0.6 * f, 0.3 * f),
    "superellipsoid": lambda f: shapes.superellipsoid(f, 0.7 * f, 0.5 * f, 4),
    "cylinder": lambda f: shapes.cylinder(0.5 * f, 1.2 * f),
    "cone": lambda f: shapes.cone(0.6 * f, 1.1 * f),
    "box": lambda f: shapes.box(f, 0.6 * f, 0.4 * f),
    "polyhedron": lambda f: shapes.polyhedron(np.array(CORNERS) * f),
    "moved box": lambda f: shapes.box(f, 0.6 * f, 0.4 * f).moved((0.3 * f, 0, 0.1 * f), (0.8, 0, 0.6, 0)),
}
PLANAR: dict[str, Callable[[float], Shape]] = {
    "half-plane": lambda f: shapes.halfplane((1, 2), 0.3 * f),
    "disc": lambda f: shapes.disc(f),
    "ellipse": lambda f: shapes.ellipse(f, 0.4 * f),
    "superellipse": lambda f: shapes.superellipse(f, 0.6 * f, 6),
    "rectangle": lambda f: shapes.rectangle(f, 0.5 * f),
    "polygon": lambda f: shapes.polygon([(0, 0), (f, 0), (0.2 * f, 0.8 * f)]),
}
PAIRS = [
    (table, a, b)
    for table in (SPATIAL, PLANAR)
    for a, b in combinations_with_replacement(table, 2)
    if not b.startswith("half")
]


def separation(a: PlacedShape, b: PlacedShape, n: np.ndarray) -> float:
    """How far apart two bodies are along n: along one normal, of all directions, as far as their gap."""
    first = 0.0
    if np.isfinite(a.shape.size):
        first = float(a.support(n[None])[0] @ n)
    else:
        first = float(a.shape.offset + n @ a.x)  # (a half-space, n its normal)
    return float(b.support(-n[None])[0] @ n) - first


@pytest.mark.parametrize(("table", "one", "two"), PAIRS, ids=[f"{a}-{b}" for _, a, b in PAIRS])
def test_patches_are_those_of_python(table: dict[str, Callable[[float], Shape]], one: str, two: str) -> None:
    """The same least gap, normal and points, whatever the size."""
    rng = np.random.default_rng(PAIRS.index((table, one, two)))
    for mode in MODES:
        for _ in range(POSES):
            f = 10.0 ** rng.choice([-3, 0, 3])
            a, b = table[one](f), table[two](f * rng.choice([1.0, 0.2]))
            x, R, y, S = poses(a, b, mode, rng)
            ours = NativePatches(a).patch(x, R, NativePatches(b), y, S)
            dim = a.dim
            placed = [PlacedShape(s, *p, np.zeros(dim)) for s, p in ((a, (x, R)), (b, (y, S)))]
            theirs = patch_points(placed[0], placed[1], np.inf)
            size = min(s.size for s in (a, b))
            if not abs(ours.gap.min() - theirs.gap.min()) <= GAP * size:
                # (edges that cross near a face: Python has them along the normal of the face)
                closest = find_closest_points(placed[0], placed[1]).points
                assert abs(ours.gap.min() - closest.gap) <= GAP * size, mode
            away = float(np.abs(ours.normal - theirs.normal).max())
            if away > NORMAL:
                # (sharp bodies that just touch have many normals)
                assert mode in ("touching", "flat")
                assert separation(*placed, ours.normal) >= theirs.gap.min() - GAP * size, mode
                continue
            assert len(ours.gap) == len(theirs.gap), mode
            round_ends = {a.kind, b.kind} & {"superellipsoid", "superellipse"}
            if mode == "flat" and (round_ends or len(ours.gap) == 1):
                # (one of many closest points; or one known to the fourth root of rounding)
                continue
            # (of edges that cross one end alone)
            ends = ((ours.point_a, theirs.point_a), (ours.point_b, theirs.point_b))
            apart = np.min([np.linalg.norm(p[:, None] - q[None], axis=2) for p, q in ends], axis=0) / size
            assert max(apart.min(axis=0).max(), apart.min(axis=1).max()) <= POINT, mode
