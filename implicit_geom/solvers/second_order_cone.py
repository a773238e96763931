"""Jordan algebra of the second-order cone x_0 >= |(x_1, x_2, ...)|, for the rows of arrays (n, k).

The product is x o y = (x . y, x_0 y_1 + y_0 x_1, ...); its unit is (1, 0, ...).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SMALLEST = 1e-300


def determinant(x: np.ndarray) -> np.ndarray:
    """x_0^2 - |(x_1, ...)|^2."""
    length = np.linalg.norm(x[:, 1:], axis=1)
    return (x[:, 0] - length) * (x[:, 0] + length)


def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x o y."""
    out = x[:, :1] * y + y[:, :1] * x
    out[:, 0] = np.einsum("ni,ni->n", x, y)
    return out


def quotient(r: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The d with x o d = r."""
    d = np.empty_like(r)
    d[:, 0] = (x[:, 0] * r[:, 0] - np.einsum("ni,ni->n", x[:, 1:], r[:, 1:])) / determinant(x)
    d[:, 1:] = (r[:, 1:] - d[:, :1] * x[:, 1:]) / x[:, :1]
    return d


def reach(x: np.ndarray, d: np.ndarray) -> float:
    """The largest t <= 1 that keeps x + t d in the cone."""
    a, c = determinant(d), np.maximum(determinant(x), 0.0)
    b = x[:, 0] * d[:, 0] - np.einsum("ni,ni->n", x[:, 1:], d[:, 1:])
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    with np.errstate(all="ignore"):
        q = -(b + np.where(b >= 0, root, -root))
        ends = np.stack([q / a, c / q, np.where(d[:, 0] < 0, -x[:, 0] / d[:, 0], np.inf)])
    ends[:2, b * b < a * c] = np.inf
    return min(1.0, float(np.min(ends, where=np.isfinite(ends) & (ends > 0), initial=1.0)))


@dataclass
class NesterovToddScaling:
    """The symmetric matrices G with G y = G^-1 x (Nesterov and Todd), by their eigenvalues.

    These belong to (1, t), (1, -t) and to what is across both.
    """

    values: np.ndarray  # (n, 3)
    t: np.ndarray

    @staticmethod
    def of(x: np.ndarray, y: np.ndarray) -> NesterovToddScaling:
        dx, dy = (np.maximum(determinant(z), SMALLEST) for z in (x, y))
        one, two = x / np.sqrt(dx)[:, None], y / np.sqrt(dy)[:, None]
        mean = one - two
        mean[:, 0] = one[:, 0] + two[:, 0]
        mean /= np.sqrt(2 * (1 + np.einsum("ni,ni->n", one, two)))[:, None]
        length = np.linalg.norm(mean[:, 1:], axis=1)
        stretch = mean[:, 0] + length
        factor = (dx / dy) ** 0.25
        values = factor[:, None] * np.stack([stretch, 1 / stretch, np.ones_like(stretch)], axis=1)
        return NesterovToddScaling(values, mean[:, 1:] / np.maximum(length, SMALLEST)[:, None])

    def matrices(self, values: np.ndarray) -> np.ndarray:
        """Those with the same eigenvectors and the given eigenvalues."""
        along, back, across = values.T
        n, k = self.t.shape
        out = np.empty((n, k + 1, k + 1))
        mean = (along + back) / 2
        out[:, 0, 0] = mean
        out[:, 0, 1:] = out[:, 1:, 0] = ((along - back) / 2)[:, None] * self.t
        square = self.t[:, :, None] * self.t[:, None, :]
        out[:, 1:, 1:] = (mean - across)[:, None, None] * square + across[:, None, None] * np.eye(k)
        return out

    def times(self, values: np.ndarray, x: np.ndarray) -> np.ndarray:
        """`matrices(values)` times x by components: small eigenvalues beside large ones keep digits."""
        inner = np.einsum("ni,ni->n", self.t, x[:, 1:])
        along, back = values[:, 0] * (x[:, 0] + inner) / 2, values[:, 1] * (x[:, 0] - inner) / 2
        out = np.empty_like(x)
        out[:, 0] = along + back
        across = x[:, 1:] - inner[:, None] * self.t
        out[:, 1:] = (along - back)[:, None] * self.t + values[:, 2:] * across
        return out
