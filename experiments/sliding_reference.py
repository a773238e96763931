"""Reference for a body that slides on the plane z = 0, touching it at one point: an ODE of high order.

Independent of the time stepper: the lowest point from support functions in closed form, the normal force
from the twice differentiated gap, friction by the law of the friction ellipsoid, integration by DOP853.

With p(d) = grad s(d) the point of the surface whose outward normal is d (body frame, s the support
function) and c the centre of mass, the lowest point is x + r with

    r = R (p(d) - c),   d = -R^T e_z,     r' = w x r - R s''(d) (w_B x d),     gap = (x + r)_z

Because s''(d) d = 0 the gap's rate is that of the material point, gap' = (v + w x r)_z, and its second
derivative is

    gap'' = (v' + w' x r + w x r')_z = 0

With the slip u = (v_t, v_o, v_r), two tangential velocities of the material point and the spin about the
normal, and E = diag(e_t, e_o, e_r), t = e_x, o = e_y, the force and the torque at the contact are

    N (phi_t, phi_o, 1)  and  N phi_r e_z,     phi = -mu E (E u) / |E u|

both linear in N, which therefore follows from one equation. With e_r > 0 the law is smooth as long as the
body spins about the normal, even where its contact point is at rest; it is stiff with the rate
mu g / (e_r |w_z|). The ODE ends with an error where E u reaches 0, where N reaches 0, or where the equation
for N loses its sign (Painleve). Gap, gap rate and the balance of energy and friction loss follow from the
equations and are not enforced: their drift measures the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from implicit_geom.experiments.ellipsoid_reference import rotation, support

Support = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
RTOL, ATOL = 1e-12, 1e-14
SLOW = 1e-9  # |E u| in m/s at which a contact counts as stopped


@dataclass(frozen=True)
class Body:
    """A support function's gradient and Hessian (shape's frame), and the mass that moves with it."""

    surface: Support
    mass: float
    inertia: np.ndarray  # (3, 3) about the centre of mass, shape's axes, kg m^2
    com: np.ndarray  # (3,) in the shape's frame, m
    gravity: float = 9.81


@dataclass(frozen=True)
class Friction:
    """mu and the friction ellipsoid's semi-axes; t is the world's x axis; e_r in m."""

    mu: float
    e_t: float = 1.0
    e_o: float = 1.0
    e_r: float = 0.0

    @property
    def E(self) -> np.ndarray:
        return np.array([self.e_t, self.e_o, self.e_r])


@dataclass(frozen=True)
class Motion:
    """The reference at the times asked for."""

    time: np.ndarray
    position: np.ndarray  # (T, 3) centre of mass
    orientation: np.ndarray  # (T, 4)
    velocity: np.ndarray  # (T, 3)
    angular_velocity: np.ndarray  # (T, 3), world frame
    point: np.ndarray  # (T, 3) contact point
    slip: np.ndarray  # (T, 3) v_t, v_o in m/s, v_r in rad/s
    normal_force: np.ndarray  # (T,) N
    friction_loss: np.ndarray  # (T,) J since the start
    energy: np.ndarray  # (T,) J, kinetic and potential
    gap: np.ndarray  # (T,) m: drift
    gap_rate: np.ndarray  # (T,) m/s: drift


def ellipsoid(axes: np.ndarray) -> Support:
    """s(d) = |A d|, A = diag(axes)."""
    return lambda d: support(np.asarray(axes, float), d)


def rim(radius: float, height: float) -> Support:
    """A circle about the z axis at z = height: s(d) = radius |(d_x, d_y)| + height d_z."""

    def surface(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        across = np.hypot(d[0], d[1])
        u = d[:2] / across
        hessian = np.zeros((3, 3))
        hessian[:2, :2] = radius / across * (np.eye(2) - np.outer(u, u))
        return np.array([radius * u[0], radius * u[1], height]), hessian

    return surface


def lowest(body: Body, R: np.ndarray) -> np.ndarray:
    """From the centre of mass to the lowest point, world axes."""
    return R @ (body.surface(-R[2])[0] - body.com)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a x b of two vectors, without numpy's overhead."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


class Sliding:
    """The ODE y' = F(t, y), y = (x, q, v, w, friction loss), while the contact lasts and slides."""

    def __init__(self, body: Body, friction: Friction) -> None:
        self.body, self.mu, self.E = body, friction.mu, friction.E

    def slip(self, v: np.ndarray, w: np.ndarray, r: np.ndarray) -> np.ndarray:
        u = v + cross(w, r)
        return np.array([u[0], u[1], w[2]])

    def contact(self, y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Normal force N, the friction phi per unit of it, r, and the acceleration v', w'."""
        b = self.body
        v, w, R = y[7:10], y[10:13], rotation(y[3:7])
        d = -R[2]
        p, hessian = b.surface(d)
        r = R @ (p - b.com)
        w_B = w @ R
        dr = cross(w, r) - R @ (hessian @ cross(w_B, d))
        phi = np.zeros(3)
        if self.mu > 0:
            u = self.E * self.slip(v, w, r)
            phi = -self.mu * self.E * u / np.linalg.norm(u)
        force = np.array([phi[0], phi[1], 1.0])
        torque = cross(r, force)
        torque[2] += phi[2]
        # angular accelerations in the body's axes: without contact, and per unit of N
        right = np.column_stack([-cross(w_B, b.inertia @ w_B), torque @ R])
        free, turned = (R @ np.linalg.solve(b.inertia, right)).T
        away = -b.gravity + cross(free, r)[2] + cross(w, dr)[2]  # gap'' without contact
        compliance = 1 / b.mass + cross(turned, r)[2]
        if compliance <= 0:
            raise ArithmeticError("the normal force does not push the contact apart (Painleve)")
        N = -away / compliance
        acceleration = N / b.mass * force
        acceleration[2] -= b.gravity
        return N, phi, r, acceleration, free + N * turned

    def __call__(self, _: float, y: np.ndarray) -> np.ndarray:
        N, phi, r, dv, dw = self.contact(y)
        q, v, w = y[3:7], y[7:10], y[10:13]
        dq = 0.5 * np.concatenate([[-w @ q[1:]], q[0] * w + cross(w, q[1:])])
        return np.concatenate([v, dq, dv, dw, [-N * phi @ self.slip(v, w, r)]])

    def pressing(self, _: float, y: np.ndarray) -> float:
        return self.contact(y)[0]

    pressing.terminal = True  # type: ignore[attr-defined]

    def moving(self, _: float, y: np.ndarray) -> float:
        v, w, r = y[7:10], y[10:13], lowest(self.body, rotation(y[3:7]))
        return float(np.linalg.norm(self.E * self.slip(v, w, r))) - SLOW

    moving.terminal = True  # type: ignore[attr-defined]


def touching(
    body: Body,
    orientation: np.ndarray,
    angular_velocity: np.ndarray,
    velocity: tuple[float, float] = (0.0, 0.0),
    position: tuple[float, float] = (0.0, 0.0),
) -> tuple[np.ndarray, np.ndarray]:
    """Position and velocity with the contact closed and at rest along z, their x and y as given."""
    r = lowest(body, rotation(np.asarray(orientation, float)))
    rate = cross(np.asarray(angular_velocity, float), r)[2]
    return np.array([*position, -r[2]]), np.array([*velocity, -rate])


def integrate(
    body: Body,
    friction: Friction,
    *,
    position: np.ndarray,
    orientation: np.ndarray,
    velocity: np.ndarray,
    angular_velocity: np.ndarray,
    times: np.ndarray,
    rtol: float = RTOL,
) -> Motion:
    """The motion from a closed contact (see `touching`); times start at 0."""
    q = np.asarray(orientation, float) / np.linalg.norm(orientation)
    start = np.concatenate([position, q, velocity, angular_velocity, [0.0]]).astype(float)
    system = Sliding(body, friction)
    events = [system.pressing] + ([system.moving] if friction.mu > 0 else [])
    solution = solve_ivp(
        system, (0.0, times[-1]), start, "DOP853", times, events=events, rtol=rtol, atol=ATOL
    )
    if solution.status == 1:
        kind = "lifts off" if solution.t_events[0].size else "stops sliding"
        when = max(t[0] for t in solution.t_events if t.size)
        raise ArithmeticError(f"the contact {kind} at t = {when:.6g} s")
    if not solution.success:
        raise ArithmeticError(solution.message)
    return _motion(system, times, solution.y.T)


def _motion(system: Sliding, times: np.ndarray, y: np.ndarray) -> Motion:
    b, rows = system.body, []
    for state in y:
        x, v, w, R = state[:3], state[7:10], state[10:13], rotation(state[3:7])
        N, _, r, _, _ = system.contact(state)
        w_B = w @ R
        energy = b.mass * (v @ v / 2 + b.gravity * x[2]) + w_B @ b.inertia @ w_B / 2
        rate = (v + cross(w, r))[2]
        rows.append((*(x + r), *system.slip(v, w, r), N, state[13], energy, (x + r)[2], rate))
    found = np.array(rows)
    parts = (y[:, :3], y[:, 3:7], y[:, 7:10], y[:, 10:13], found[:, :3], found[:, 3:6])
    return Motion(times, *parts, *(found[:, k] for k in range(6, 11)))
