"""Closest points of many pairs at once, for pairs that become candidates.

One surface a body, or a half-space: Newton's method from the support points along a guessed direction, all
pairs in step. What it does not settle is left to `implicit_geom.geometry.distance`.
"""

from __future__ import annotations

import numpy as np

from implicit_geom.equations.pair_kernel import PairKernel
from implicit_geom.equations.unknowns import flat
from implicit_geom.geometry.supports import Supports
from implicit_geom.model.closest_point_problem import TOLERANCE, shorten
from implicit_geom.model.contact_group import ContactGroup
from implicit_geom.model.model import Model, State

STEPS = 20
# A local maximum of the separation that is this little below zero, over the body's size, is the maximum:
# were the largest separation above it, the separation would rise from here towards its direction.
OVERLAP = 1e-9


def single_surfaces(kernel: PairKernel) -> bool:
    """Whether both bodies are half-spaces or bounded by one surface."""
    layout = kernel.layout
    return layout.first <= 1 and layout.second == 1 and not kernel.kind.patches


def group_closest_points(
    model: Model, g: ContactGroup, state: State, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Geometry unknowns for h = 1, normals, and which of the pairs of a group are settled.

    n are guessed directions from the first to the second body.
    """
    at, dim, layout = g.kernel.layout.at, model.dim, g.kernel.layout
    ends = g.linear.inputs[0].shape[1] - layout.size
    for name, value in (("h", 1.0), ("eps", 0.0), ("U", g.get("L")), ("c", g.get("L")), ("m_c", 1.0)):
        g.set(name, value)
    g.set("offset", state.x[g.second] - state.x[g.first])
    for i, body in ((1, g.first), (2, g.second)):
        g.set(f"R{i}", flat(state.R[body]))
        g.set(f"weight{i}", 0.0)
    inputs = np.zeros((g.n, ends + layout.size))
    u = inputs[:, ends : ends + layout.geometry]
    points, L = Supports(model), g.get("L")
    if layout.known_normal:
        n = np.einsum("nij,nj->ni", state.R[g.first], g.get("theta1")[:, :dim])
        u[:, at["r"]] = (points.points(state, g.pieces[1], -n) - state.x[g.second]) / L
    else:
        one, two = points.points(state, g.pieces[0], n), points.points(state, g.pieces[1], -n)
        u[:, at["r"]] = (one - state.x[g.first]) / L
        u[:, at["D"]] = np.einsum("ni,ni->n", two - one, n)[:, None]
        u[:, at["n"]] = n
    u[:, at["l"].start : at["k"].stop] = 1.0
    geometry = slice(0, layout.geometry)
    sparsity = g.kernel.sparsity(smooth=False)
    row, column = np.array(sparsity.row(), int), np.array(sparsity.get_col(), int)
    A = np.zeros((g.n, layout.size + ends, layout.size + ends))
    worst = np.full(g.n, np.inf)
    for _ in range(STEPS):
        F, entries = g.linear(inputs, g.parameters)
        F = F[:, geometry].copy()
        worst = np.abs(F).max(axis=1)
        if not np.any(worst > TOLERANCE):
            break
        A[:, row, column] = entries
        J = A[:, geometry, ends : ends + layout.geometry]
        with np.errstate(all="ignore"):
            good = np.isfinite(J).all(axis=(1, 2)) & np.isfinite(F).all(axis=1)
            good &= np.abs(np.linalg.det(np.where(good[:, None, None], J, 0.0))) > 1e-100
        step = np.zeros_like(F)
        step[good] = -np.linalg.solve(J[good], F[good][:, :, None])[:, :, 0]
        shorten(step[:, at["r"]])
        u += step
    found = g.closest(u, 1.0)
    signs = (u[:, at["l"].start : at["k"].stop] > 0).all(axis=1)
    settled = (worst <= TOLERANCE) & signs & (found.gap >= -OVERLAP * L[:, 0])
    return u, found.n, settled
