"""The edge-aware search along the dogleg: crossings (27), a cubic in each smooth sub-segment [T10, III-C]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.solvers.contact.t10.maps import System, impulse_along

END = 1e-9  # crossings nearer to an end of a segment, of length 1, are that end
BACKTRACKS = 12  # cubics of the search that knows no edges


@dataclass(frozen=True)
class Found:
    """The best point of a search: x, its objective, its segment, whether it is on an edge crossing."""

    x: np.ndarray
    objective: float
    segment: int
    edge: bool


def crossings(system: System, x: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where x + a e, 0 < a < 1, crosses edges: a sorted, the contact of each, and whether it is the cone.

    Plane: y + a e_N = 0. Cone: mu^2 (y + a e_N)^2 = |x_F + a e_F|^2 with y + a e_N <= 0 [T10, eq. 27].
    """
    y, e_n, mu = x[:, 0] - system.b, e[:, 0], system.mu
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        plane = -y / e_n
        A = np.einsum("ni,ni->n", e[:, 1:], e[:, 1:]) - (mu * e_n) ** 2
        B = np.einsum("ni,ni->n", x[:, 1:], e[:, 1:]) - mu**2 * y * e_n
        C = np.einsum("ni,ni->n", x[:, 1:], x[:, 1:]) - (mu * y) ** 2
        # the root of larger size first, the other one by Vieta: no cancellation
        q = -(B + np.where(B >= 0, 1.0, -1.0) * np.sqrt(B**2 - A * C))
        roots = np.stack([plane, q / A, C / q])
        inside = (roots > END) & (roots < 1 - END)
        inside[1:] &= (y + roots[1:] * e_n <= 0) & (mu > 0)
    kind, contact = np.nonzero(inside)
    a = roots[kind, contact]
    order = np.argsort(a)
    return a[order], contact[order], kind[order] > 0


def objective(system: System, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """l(x) = |D r|^2 / 2 of points x (m, n, d) [T10, eq. 19]; `weight` is D."""
    r = system.r(x) * weight
    return np.asarray(0.5 * np.einsum("mni,mni->m", r, r))


def slopes(system: System, x: np.ndarray, of: np.ndarray, e: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """r^T D^2 J e at points x (m, n, d), derivatives as in the regions `of`."""
    r = system.r(x) * weight**2
    Fe = impulse_along(x, system.b, system.mu, of, np.broadcast_to(e, x.shape))
    return np.asarray(np.einsum("mni,mni->m", Fe, system.pulled(r)) - np.einsum("mni,ni->m", r, e))


def cubic_minimum(
    length: np.ndarray, l_0: np.ndarray, l_1: np.ndarray, s_0: np.ndarray, s_1: np.ndarray
) -> np.ndarray:
    """Minimum in (0, length) of the cubics with values l, slopes s at the ends; NaN where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        c = s_0 + s_1 - 3 * (l_1 - l_0) / length
        # slope s_0 - 2 (s_0 + c) t + (s_0 + s_1 + 2 c) t^2 at t = a / length; of two forms of its root
        # with growing slope the one that does not cancel
        middle, root = s_0 + c, np.sqrt(c**2 - s_0 * s_1)
        t = np.where(middle >= 0, (middle + root) / (s_0 + s_1 + 2 * c), s_0 / (middle - root))
        a = length * t
        return np.where((a > 0) & (a < length), a, np.nan)


def along_segment(system: System, x: np.ndarray, to: np.ndarray, weight: np.ndarray, segment: int) -> Found:
    """The best of the crossings, the end and the cubics' minima on the segment from x to `to`."""
    e = to - x
    a, contact, cone = crossings(system, x, e)
    stops = np.concatenate([[0.0], a, [1.0]])
    points = x + stops[:, None, None] * e
    points[-1] = to
    _snap(system, points[1:-1], contact, cone)
    low, high = stops[:-1], stops[1:]
    of = system.region(x + (0.5 * (low + high))[:, None, None] * e)
    l_at = objective(system, points, weight)
    s_0 = slopes(system, points[:-1], of, e, weight)
    s_1 = slopes(system, points[1:], of, e, weight)
    inner = low + cubic_minimum(high - low, l_at[:-1], l_at[1:], s_0, s_1)
    tried = x + inner[np.isfinite(inner)][:, None, None] * e
    l_tried = objective(system, tried, weight)
    best = int(np.argmin(l_at[1:])) + 1
    found = Found(points[best], float(l_at[best]), segment, best < len(stops) - 1)
    if len(l_tried) and np.min(l_tried) < found.objective:
        i = int(np.argmin(l_tried))
        found = Found(tried[i], float(l_tried[i]), segment, False)
    return found


def backtracked(system: System, x: np.ndarray, to: np.ndarray, weight: np.ndarray, segment: int) -> Found:
    """A search that knows no edges: cubics from `to` back to x until the objective is below that at x."""
    e = to - x
    l_0 = float(objective(system, x[None], weight)[0])
    s_0 = slopes(system, x[None], system.region(x)[None], e, weight)
    a = 1.0
    for _ in range(BACKTRACKS):
        at = (x + a * e)[None]
        l_a = objective(system, at, weight)
        if l_a[0] < l_0:
            break
        s_a = slopes(system, at, system.region(at), e, weight)
        shorter = float(cubic_minimum(np.array([a]), np.array([l_0]), l_a, s_0, s_a)[0])
        a = shorter if 0.1 * a < shorter < 0.5 * a else 0.3 * a
    return Found(at[0], float(l_a[0]), segment, False)


def dogleg_search(
    system: System, x: np.ndarray, x_c: np.ndarray, x_n: np.ndarray, weight: np.ndarray, edge_aware: bool
) -> Found:
    """The best point of x : x_C and x_C : x_N."""
    search = along_segment if edge_aware else backtracked
    first = search(system, x, x_c, weight, 0)
    second = search(system, x_c, x_n, weight, 1)
    return second if second.objective < first.objective else first


def _snap(system: System, points: np.ndarray, contact: np.ndarray, cone: np.ndarray) -> None:
    """Put the crossing contact of each point on its edge without rounding."""
    for point, k, on_cone in zip(points, contact.tolist(), cone.tolist()):
        y = point[k, 0] - system.b[k]
        if on_cone and y < 0:
            point[k, 1:] *= -system.mu[k] * y / max(float(np.linalg.norm(point[k, 1:])), 1e-300)
        else:
            point[k, 0] = system.b[k]
