"""f(x) and v(x), in which Coulomb's law is built in, their derivatives, and the residual [T10, section II].

Of one contact x = (x_N, x_F), normal first. With y = x_N - b there are three regions [T10, Fig. 1C]:

    break   y >= 0                 f = 0
    stick   |x_F| <= -mu y         f = b - x
    slip    elsewhere              f = (-y, mu y x_F / |x_F|)

and v = f + x. Arrays x are (..., n, d), b and mu (n,). What T10 leaves out: the blocks of f' are 0, -I and
[[-1, 0], [mu u, -(mu f_N / |x_F|) (I - u u^T)]] with u = x_F / |x_F|.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from implicit_geom.process.lazy import cached_property

BREAK, STICK, SLIP = 0, 1, 2
TINY = 1e-300  # keeps 0/0 away


def friction_norm(x: np.ndarray) -> np.ndarray:
    """|x_F|, (..., n)."""
    return np.asarray(np.sqrt(np.einsum("...i,...i->...", x[..., 1:], x[..., 1:])))


def region(x: np.ndarray, b: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """BREAK, STICK or SLIP of each contact, (..., n); without friction nothing sticks."""
    y = x[..., 0] - b
    sticks = (friction_norm(x) <= -mu * y) & (mu > 0)
    return np.where(y >= 0, BREAK, np.where(sticks, STICK, SLIP))


def impulse(x: np.ndarray, b: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """f(x) [T10, eq. 10, 12, 13]."""
    f = np.empty_like(x)
    f[..., 0] = np.maximum(b - x[..., 0], 0.0)  # 10
    s = np.minimum(1.0, mu * f[..., 0] / np.maximum(friction_norm(x), TINY))  # 12
    f[..., 1:] = -s[..., None] * x[..., 1:]  # 13
    return f


def velocity(x: np.ndarray, b: np.ndarray, mu: np.ndarray) -> np.ndarray:
    """v(x) = f(x) + x [T10, eq. 14]; in break and stick its zeros are exact."""
    v = impulse(x, b, mu) + x
    v[..., 0] = np.maximum(b, x[..., 0])
    return v


def impulse_along(x: np.ndarray, b: np.ndarray, mu: np.ndarray, of: np.ndarray, e: np.ndarray) -> np.ndarray:
    """f'(x) e in given regions, (..., n, d); on an edge the regions say from which side."""
    rho = np.maximum(friction_norm(x), TINY)
    u = x[..., 1:] / rho[..., None]
    ratio = np.minimum(1.0, mu * np.maximum(b - x[..., 0], 0.0) / rho)  # s of (12); below one where it slips
    along = np.einsum("...i,...i->...", u, e[..., 1:])
    slides = of == SLIP
    out = np.where((of == BREAK)[..., None], 0.0, -e)
    turned = u * (mu * e[..., 0] + ratio * along)[..., None] - ratio[..., None] * e[..., 1:]
    out[..., 1:] = np.where(slides[..., None], turned, out[..., 1:])
    return out


def blocks(x: np.ndarray, b: np.ndarray, mu: np.ndarray, of: np.ndarray) -> np.ndarray:
    """f'(x) in given regions, (n, d, d)."""
    n, d = x.shape
    rows = np.broadcast_to(np.eye(d)[:, None, :], (d, n, d))
    return impulse_along(x, b, mu, of, rows).transpose(1, 2, 0)


@dataclass(frozen=True)
class System:
    """A f + v0 = v [T10, eq. 1] with A (n d, n d), v0 (n, d), b (n,), mu (n,)."""

    A: np.ndarray
    v0: np.ndarray
    b: np.ndarray
    mu: np.ndarray

    @cached_property
    def A_I(self) -> np.ndarray:
        """A - I."""
        return np.asarray(self.A - np.eye(len(self.A)))

    def f(self, x: np.ndarray) -> np.ndarray:
        """Impulses; x (..., n, d)."""
        return impulse(x, self.b, self.mu)

    def v(self, x: np.ndarray) -> np.ndarray:
        """Velocities; x (..., n, d)."""
        return velocity(x, self.b, self.mu)

    def r(self, x: np.ndarray) -> np.ndarray:
        """(A - I) f(x) - x + v0 [T10, eq. 15]; x (..., n, d)."""
        f = self.f(x)
        v = f + x  # 14
        v[..., 0] = np.maximum(self.b, x[..., 0])  # without the rounding of x
        return self._times(self.A, f) + self.v0 - v

    def pulled(self, r: np.ndarray) -> np.ndarray:
        """(A - I) r, (..., n, d): with it J^T r is made block by block, f'^T (A - I) r - r."""
        return self._times(self.A_I, r)

    def _times(self, symmetric: np.ndarray, x: np.ndarray) -> np.ndarray:
        flat = x.reshape(*x.shape[:-2], len(symmetric))
        return np.asarray((flat @ symmetric).reshape(x.shape))

    def region(self, x: np.ndarray) -> np.ndarray:
        """Region of each contact."""
        return region(x, self.b, self.mu)

    def jacobian(self, F: np.ndarray, B: np.ndarray) -> np.ndarray:
        """J B = (A - I) F B - B of blocks F, B (n, d, d); (n d, n d) [T10, eq. 18]."""
        n, d = self.v0.shape
        columns = self.A_I.reshape(n * d, n, d).transpose(1, 0, 2) @ (F @ B)
        J = columns.transpose(1, 0, 2).reshape(n, d, n, d)  # a copy
        own = np.arange(n)
        J[own, :, own] -= B
        return J.reshape(n * d, n * d)
