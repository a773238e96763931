"""Reference for an ellipsoid on a fixed ellipsoid: the constrained motion as an ODE of high order.

Independent of the time stepper: closest points from support functions by Newton's method on their
KKT system, contact forces from the twice differentiated constraint, integration by DOP853.

Both surfaces are given by the support function of an ellipsoid, s_A(n) = |A n| with A = diag(axes):
its gradient A^2 n / |A n| is the point of the surface with outward normal n. With the fixed body at
the origin, the moving one at (x, R), and n pointing from the fixed body to the moving one,

    x + r - a - d n = 0,   n . n = 1,     a = grad s_A(n),   r = -R grad s_B(R^T n)          (KKT)

gives the normal n and the gap d. With u = v + w x r, H = s_A'' and K = R s_B'' R^T, differentiating it
once gives

    (H + K + d I) n' = u + K (w x n) - d' n,     r' = w x r - K (n' - w x n),     d' = n . u

and the contact force f = N n (sliding without friction) or any f (rolling) follows from

    sliding   d'' = n' . u + n . (v' + w' x r + w x r') = 0
    rolling   u'  = v' + w' x r + w x r' = 0

together with m v' = m g + f,  J w' + w x J w = r x f. Gap, constraint and energy are conserved by the
equations and not enforced: their drift measures the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

NEWTON_STEPS = 30
CONVERGED = 1e-14  # relative to the fixed body's size


@dataclass(frozen=True)
class Bodies:
    """Semi-axes of the fixed and the moving ellipsoid (m), the moving one's mass (kg), gravity (m/s^2)."""

    fixed: np.ndarray
    moving: np.ndarray
    mass: float
    gravity: np.ndarray

    @property
    def inertia(self) -> np.ndarray:
        """Principal moments of the moving body at uniform density, kg m^2."""
        a, b, c = self.moving**2
        return self.mass / 5 * np.array([b + c, a + c, a + b])


@dataclass(frozen=True)
class Motion:
    """The reference at the times asked for."""

    time: np.ndarray
    position: np.ndarray  # (T, 3)
    orientation: np.ndarray  # (T, 4)
    velocity: np.ndarray  # (T, 3)
    angular_velocity: np.ndarray  # (T, 3), world frame
    point: np.ndarray  # (T, 3) contact point
    normal_force: np.ndarray  # (T,) N
    friction_force: np.ndarray  # (T,) N, magnitude
    gap: np.ndarray  # (T,) m: drift
    slip: np.ndarray  # (T,) m/s: drift of the constraint, normal (sliding) or whole velocity (rolling)
    energy: np.ndarray  # (T,) J


def rotation(q: np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion w, x, y, z of any length."""
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def support(axes: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian of s(n) = |A n|."""
    length = np.linalg.norm(axes * n)
    point = axes**2 * n / length
    return point, (np.diag(axes**2) - np.outer(point, point)) / length


def touching(bodies: Bodies, n: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Where the moving body's centre is when it touches the fixed one with normal n."""
    R, n = rotation(q), n / np.linalg.norm(n)
    return support(bodies.fixed, n)[0] + R @ support(bodies.moving, R.T @ n)[0]


class ContactFrame:
    """The solution of the KKT system at one pose; `start` is a normal near the solution's."""

    def __init__(self, bodies: Bodies, x: np.ndarray, R: np.ndarray, start: np.ndarray) -> None:
        n, d = start / np.linalg.norm(start), 0.0
        size = np.max(bodies.fixed)
        for _ in range(NEWTON_STEPS):
            self.point, self.H = support(bodies.fixed, n)
            local, hessian = support(bodies.moving, R.T @ n)
            self.r, self.K = -R @ local, R @ hessian @ R.T
            rows = np.append(x + self.r - self.point - d * n, (1 - n @ n) / 2)
            if np.max(np.abs(rows)) < CONVERGED * size:
                break
            jacobian = np.zeros((4, 4))
            jacobian[:3, :3] = self.H + self.K + d * np.eye(3)
            jacobian[:3, 3] = jacobian[3, :3] = n
            step = np.linalg.solve(jacobian, rows)
            n, d = n + step[:3], d + step[3]
        else:
            if np.max(np.abs(rows)) > 100 * CONVERGED * size:
                raise ArithmeticError(f"no closest points at x = {x}")
        self.n, self.d = n, d

    def rates(self, v: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """u, n' and r' for the velocities given."""
        n = self.n
        u, turned = v + np.cross(w, self.r), np.cross(w, n)
        matrix = self.H + self.K + self.d * np.eye(3) + np.outer(n, n)
        dn = np.linalg.solve(matrix, u + self.K @ turned - (n @ u) * n)
        return u, dn, np.cross(w, self.r) - self.K @ (dn - turned)


class Constrained:
    """The ODE y' = F(t, y), y = (x, q, v, w), while the contact lasts."""

    def __init__(self, bodies: Bodies, normal: np.ndarray, rolling: bool) -> None:
        self.bodies, self.rolling = bodies, rolling
        self.normal = normal  # start value of the next KKT solve

    def force(self, y: np.ndarray) -> tuple[np.ndarray, ContactFrame, np.ndarray]:
        """Contact force on the moving body, the contact, and the world inertia."""
        b = self.bodies
        x, q, v, w = y[:3], y[3:7], y[7:10], y[10:]
        R = rotation(q)
        J = R @ np.diag(b.inertia) @ R.T
        contact = ContactFrame(b, x, R, self.normal)
        self.normal = contact.n
        u, dn, dr = contact.rates(v, w)
        r, n = contact.r, contact.n
        # acceleration of the body's contact point without a contact force, and per unit of force
        free = b.gravity - np.cross(np.linalg.solve(J, np.cross(w, J @ w)), r) + np.cross(w, dr)
        lever = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        compliance = np.eye(3) / b.mass - lever @ np.linalg.solve(J, lever)
        if self.rolling:
            return np.linalg.solve(compliance, -free), contact, J
        return -(dn @ u + n @ free) / (n @ compliance @ n) * n, contact, J

    def __call__(self, _: float, y: np.ndarray) -> np.ndarray:
        f, contact, J = self.force(y)
        q, w = y[3:7], y[10:]
        dq = 0.5 * np.concatenate([[-w @ q[1:]], q[0] * w + np.cross(w, q[1:])])
        dw = np.linalg.solve(J, np.cross(contact.r, f) - np.cross(w, J @ w))
        return np.concatenate([y[7:10], dq, self.bodies.gravity + f / self.bodies.mass, dw])


def integrate(
    bodies: Bodies, normal: np.ndarray, orientation: np.ndarray, times: np.ndarray, *, rolling: bool
) -> Motion:
    """The motion from rest at the contact with the given normal and orientation; times start at 0."""
    q = np.asarray(orientation, float) / np.linalg.norm(orientation)
    start = np.concatenate([touching(bodies, normal, q), q, np.zeros(6)])
    system = Constrained(bodies, normal / np.linalg.norm(normal), rolling)
    solution = solve_ivp(system, (0.0, times[-1]), start, "DOP853", times, rtol=1e-12, atol=1e-13)
    if not solution.success:
        raise ArithmeticError(solution.message)
    system.normal = normal / np.linalg.norm(normal)
    rows = []
    for y in solution.y.T:
        f, contact, J = system.force(y)
        u = y[7:10] + np.cross(y[10:], contact.r)
        energy = bodies.mass * (y[7:10] @ y[7:10] / 2 - bodies.gravity @ y[:3]) + y[10:] @ J @ y[10:] / 2
        pressed = f @ contact.n
        broken = np.linalg.norm(u) if rolling else abs(u @ contact.n)
        tangential = np.linalg.norm(f - pressed * contact.n)
        rows.append((*contact.point, pressed, tangential, contact.d, broken, energy))
    found, y = np.array(rows), solution.y.T
    return Motion(
        times, y[:, :3], y[:, 3:7], y[:, 7:10], y[:, 10:], found[:, :3], *(found[:, k] for k in range(3, 8))
    )
