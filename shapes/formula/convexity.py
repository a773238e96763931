"""Checks that a surface given as text encloses one convex body; each refusal names a point.

Convexity is tested, not proved: the Hessian of f must have no negative eigenvalue at sample points
in and on the body, f must not rise above its chords, and no part of {f <= 0} may lie beyond the
surface seen from the lowest point. A body that passes may still be non-convex between the samples.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from implicit_geom.shapes.errors import ShapeError
from implicit_geom.shapes.sampled.rays import columns
from implicit_geom.shapes.sampled.sampled_shape import QUIET, SampledShape

BOXES = (1.0, 10.0, 100.0, 1e3, 1e4)  # half-widths in m searched for the body, smallest first
TRIALS = 500
STARTS = 6
PATIENCE: dict[str, Any] = {"ipopt.max_iter": 60, "ipopt.max_cpu_time": 0.3}
EFFORT = 2e8  # instructions of all searches together, half a second: convex functions take about a tenth
CALL, ITERATION = 2000, 1e5  # instructions in whose time f is called, an iteration is made
FRACTIONS = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)  # of the way to the surface, for Hessian samples
EIGEN_TOLERANCE = 1e-7  # relative to the largest eigenvalue: rounding of a flat direction
CHORD_TOLERANCE = 1e-9

Lowest = list[tuple[np.ndarray, float]]


def lowest_points(shape: SampledShape) -> Lowest:
    """Local minima of f from several starts, the lowest first; (point, value) each.

    Boxes of growing size are searched until f has a negative minimum inside one of them; f of an
    unbounded body may fall for ever, and then the first box with a negative value is taken.
    """
    x = ca.SX.sym("x", shape.dim)
    f = columns(shape, x)[0][0]
    solver = ca.nlpsol("lowest", "ipopt", {"x": x, "f": f}, {**QUIET, **PATIENCE})
    rng = np.random.default_rng(0)
    fallback: Lowest = []
    anything: Lowest = []
    length, spent = ca.Function("f", [x], [f]).n_instructions(), 0.0
    for box in BOXES:
        if spent > EFFORT:
            break
        trial = np.vstack([np.zeros(shape.dim), box * rng.uniform(-0.9, 0.9, (TRIALS, shape.dim))])
        value = np.nan_to_num(shape.violation(trial), nan=np.inf, posinf=np.inf, neginf=np.inf)
        real = trial[np.isfinite(value)]
        # the lowest points lead to the body, a few of the others to any second piece
        starts = np.vstack([real[:STARTS], trial[np.argsort(value)[: STARTS // 2]]]) if len(real) else real
        found: Lowest = []
        for start in starts:
            if spent > EFFORT:
                break
            answer = solver(x0=start, lbx=-box, ubx=box)
            told = solver.stats()
            spent += ITERATION * told["iter_count"] + (CALL + length) * told["n_call_nlp_f"]
            point, lowest = np.array(answer["x"]).ravel(), float(answer["f"])
            if np.isfinite(lowest) and np.isfinite(point).all():
                found.append((point, lowest))
        found.sort(key=lambda pair: pair[1])
        anything = found or anything
        if found and found[0][1] < 0:
            if np.max(np.abs(found[0][0])) < 0.99 * box:
                return found
            if fallback:  # still falling in a box ten times as wide
                return fallback
            fallback = found
    if not (fallback or anything):
        raise ShapeError("surface: f has no real value at any of the points tried; use abs() under powers")
    return fallback or anything


def check_single(shape: SampledShape, lowest: Lowest, radius: float) -> None:
    """No second piece: the segment between two minima stays inside, nothing lies beyond the surface."""
    point = lowest[0][0]
    for other, value in lowest[1:]:
        if value < 0:
            middle = point + np.linspace(0, 1, 33)[:, None] * (other - point)
            inside = shape.violation(middle)
            if np.max(inside) > 1e-9 * abs(lowest[0][1]):
                k = int(np.argmax(inside))
                raise ShapeError(
                    f"surface: not convex; {_text(point)} and {_text(other)} are inside, "
                    f"{_text(middle[k])} between them is outside (f = {inside[k]:.3g})"
                )
    rng = np.random.default_rng(1)
    far = point + radius * 8 * rng.uniform(-1, 1, (4000, shape.dim))
    values = shape.violation(far)
    inside_far = far[np.isfinite(values) & (values < 0)]
    if len(inside_far) == 0:
        return
    gauge = shape.rays.gauge(inside_far - point).max(axis=1)
    k = int(np.argmax(gauge))
    if gauge[k] > 1 + 1e-6:
        raise ShapeError(
            f"surface: not convex; {_text(inside_far[k])} is inside, but the segment to {_text(point)} is not"
        )


def check_hessian(shape: SampledShape, boundary: np.ndarray) -> np.ndarray:
    """No negative eigenvalue of the Hessian at samples in and on the body; returns the samples."""
    o = shape.interior
    points = np.vstack([o + t * (boundary - o) for t in FRACTIONS])
    values = shape.violation(points)
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        raise ShapeError(f"surface: f has no real value at {_text(points[k])}; use abs() under powers")
    eigenvalues = _eigenvalues(shape, points)
    smooth = np.isfinite(eigenvalues).all(axis=1)  # |x|^1.5 has an infinite second derivative at 0
    low = np.where(smooth, eigenvalues[:, 0], 0.0)
    largest = np.max(np.abs(np.where(smooth[:, None], eigenvalues, 0.0)), axis=1)
    # judged at each point by itself: the eigenvalues of x^100 differ by many orders between points
    natural = np.max(np.abs(values)) / np.median(np.sum((boundary - o) ** 2, axis=1))
    excess = low + EIGEN_TOLERANCE * largest + 1e-9 * natural
    k = int(np.argmin(excess))
    if excess[k] < 0:
        raise ShapeError(
            f"surface: not convex; at {_text(points[k])} the Hessian of f has the eigenvalue {low[k]:.3g}"
        )
    return points


def check_chords(shape: SampledShape, points: np.ndarray) -> None:
    """f at the middle of two points of the body is at most the mean of its values there."""
    rng = np.random.default_rng(2)
    a, b = points[rng.integers(0, len(points), 4000)], points[rng.integers(0, len(points), 4000)]
    at_a, at_b = shape.violation(a), shape.violation(b)
    rise = np.nan_to_num(shape.violation((a + b) / 2), nan=np.inf) - (at_a + at_b) / 2
    k = int(np.argmax(rise))
    if rise[k] > CHORD_TOLERANCE * np.max(np.abs(at_a)):
        raise ShapeError(
            f"surface: not convex; at {_text((a[k] + b[k]) / 2)} f lies {rise[k]:.3g} above the chord "
            f"from {_text(a[k])} to {_text(b[k])}"
        )


def _eigenvalues(shape: SampledShape, points: np.ndarray) -> np.ndarray:
    """Eigenvalues of the Hessian of f, ascending; (N, dim)."""
    x = ca.SX.sym("x", shape.dim)
    H = ca.Function("H", [x], [ca.reshape(ca.hessian(columns(shape, x)[0][0], x)[0], -1, 1)])
    flat = np.asarray(H(points.T)).T.reshape(-1, shape.dim, shape.dim)
    finite = np.isfinite(flat).all(axis=(1, 2))
    found = np.full((len(points), shape.dim), np.nan)
    found[finite] = np.linalg.eigvalsh(flat[finite])
    return found


def _text(point: np.ndarray) -> str:
    tidy = np.where(np.abs(point) < 1e-12, 0.0, point)
    return "(" + ", ".join(f"{v:.4g}" for v in tidy) + ")"
