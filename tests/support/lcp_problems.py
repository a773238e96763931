"""Linear complementarity problems by kind: P-matrices, frictional contact, degenerate ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Lcp:
    """M, q, and what is unique of a solution: `seen @ z`."""

    M: np.ndarray
    q: np.ndarray
    seen: np.ndarray


def p_matrix(n: int, seed: int) -> Lcp:
    """Positive definite and far from symmetric: exactly one solution."""
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2, n, n))
    return Lcp(0.2 * A @ A.T + np.diag(rng.uniform(0.1, 1, n)) + B - B.T, rng.normal(size=n), np.eye(n))


def murty(n: int) -> Lcp:
    """Murty's triangular problem: z = (0, ..., 0, 1); pivots grow as 2^n where the path is badly chosen."""
    return Lcp(np.eye(n) + 2 * np.triu(np.ones((n, n)), 1), -np.ones(n), np.eye(n))


def friction(
    W_n: np.ndarray, D: np.ndarray, v: np.ndarray, mu: float, inverse_mass: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """M and q of AH02's (6), (7) without joints, velocity eliminated; D (nv, contacts, directions).

    z = (c_n, beta, lambda), w = (normal velocities, D'v + lambda, mu c_n - sum beta)
    """
    nv, contacts, k = D.shape
    W = np.hstack([W_n, D.reshape(nv, -1)])
    E = np.kron(np.eye(contacts), np.ones((k, 1)))
    M = np.zeros((contacts * (k + 2),) * 2)
    last = contacts * (k + 1)
    M[:last, :last] = W.T @ (inverse_mass[:, None] * W)
    M[contacts:last, last:] = E
    M[last:, :contacts] = mu * np.eye(contacts)
    M[last:, contacts:last] = -E.T
    return M, np.concatenate([W.T @ v, np.zeros(contacts)])


def random_contacts(contacts: int, directions: int, mu: float, seed: int) -> Lcp:
    """Independent random wrenches on one body: the velocity after a blow is unique for small friction."""
    rng = np.random.default_rng(seed)
    nv = 6
    W_n, (T, B) = rng.normal(size=(nv, contacts)), rng.normal(size=(2, nv, contacts))
    angle = 2 * np.pi * np.arange(directions) / directions
    D = T[:, :, None] * np.cos(angle) + B[:, :, None] * np.sin(angle)
    M, q = friction(W_n, D, 3 * rng.normal(size=nv), mu, rng.uniform(0.1, 10, nv))
    W = np.hstack([W_n, D.reshape(nv, -1), np.zeros((nv, contacts))])
    return Lcp(M, q, W)


def box_on_four_corners(mu: float, push: float) -> Lcp:
    """A box on a plane, pushed sideways: impulses are not unique, their sum on the box is."""
    corners = np.array([[x, y, -0.5] for x in (-1, 1) for y in (-1, 1)])
    wrench = lambda d: np.concatenate([np.tile(d, (4, 1)), np.cross(corners, d)], axis=1).T  # noqa: E731
    W_n = wrench(np.array([0.0, 0, 1]))
    turns = np.pi / 4 * np.arange(8)
    D = np.stack([wrench(np.array([np.cos(a), np.sin(a), 0])) for a in turns], axis=2)
    inverse = np.array([1.0, 1, 1, 2.4, 2.4, 1.5])
    M, q = friction(W_n, D, np.array([push, 0, -0.0981, 0, 0, 0]), mu, inverse)
    return Lcp(M, q, np.hstack([W_n, D.reshape(6, -1), np.zeros((6, 4))]))


def column_of_discs(count: int) -> Lcp:
    """Discs on top of each other at rest: every normal velocity is the same, every tie is there."""
    W = -np.eye(count) + np.eye(count, k=-1)
    return Lcp(W @ W.T, W @ np.full(count, 0.1) * 1.0, np.eye(count))


PROBLEMS = {
    "P, 3": p_matrix(3, 0),
    "P, 12": p_matrix(12, 1),
    "P, 60": p_matrix(60, 2),
    "Murty, 10": murty(10),
    "one contact in the plane": random_contacts(1, 2, 0.4, 3),
    "one contact": random_contacts(1, 8, 0.4, 4),
    "three contacts": random_contacts(3, 8, 0.1, 5),
    "box at rest": box_on_four_corners(0.5, 0.0),
    "box that sticks": box_on_four_corners(0.5, 0.02),
    "box that slides": box_on_four_corners(0.2, 0.5),
    "column": column_of_discs(12),
    "nothing to do": Lcp(np.eye(3), np.array([1.0, 0, 2]), np.eye(3)),
    "of no size": Lcp(np.zeros((0, 0)), np.zeros(0), np.zeros((0, 0))),
}
UNSOLVABLE = {
    "negative definite": (-np.eye(2), np.array([-1.0, -1.0])),
    "infeasible": (np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([1.0, -1.0])),
    "zero": (np.zeros((3, 3)), np.array([1.0, -1.0, 0.0])),
    "a small row beside a large one": (np.diag([1.0, 0.0]), np.array([-1e10, -1.0])),
    "the same with a negative diagonal": (np.diag([1.0, -1.0]), np.array([-1e10, -1.0])),
    "skew and badly scaled": (np.array([[0.0, -1e-10], [1e-10, 0.0]]), np.array([-1.0, -1.0])),
    "only a z without bound": (np.array([[1.0, -1e-3], [-1e-3, 1e-6]]), np.array([0.0, -1e-2])),
}
