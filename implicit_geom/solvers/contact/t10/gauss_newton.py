"""Gauss-Newton steps on |D r(x)|^2 / 2 with dogleg, adaptive damping and edges [T10, III-A to III-E]."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from implicit_geom.solvers.contact.t10.edges import LocalModel, local_model, on_cone_edge
from implicit_geom.solvers.contact.t10.maps import System, friction_norm
from implicit_geom.solvers.contact.t10.options import T10Options
from implicit_geom.solvers.contact.t10.search import dogleg_search

SUCCESS, LOCAL_MINIMUM, EXCEEDED = "success", "local minimum", "max iterations exceeded"
CONTRACTS = 0.9  # a chord step is kept where it lowers the objective so far
LEAST_GAIN = 1e-14  # a decrease of the objective below this part of it is rounding


@dataclass
class Outcome:
    """Where a minimisation stands.

    x                (n, d)
    status           SUCCESS, LOCAL_MINIMUM or EXCEEDED
    factorisations   of H
    steps            kind of each iteration: `newton`, to the Newton point; `edge`, to an edge crossing, or
                     `smooth`, between two of them, in x_C : x_N; the same in x : x_C with `cauchy` before
    history          |r| at the start and after each iteration
    restarts         attempts after the first one
    f, v             impulses and velocities at x, (n, d), in the units of the problem
    path             of x, if kept
    """

    x: np.ndarray
    status: str = EXCEEDED
    factorisations: int = 0
    steps: list[str] = field(default_factory=list)
    history: list[float] = field(default_factory=list)
    restarts: int = 0
    f: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    v: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    path: list[np.ndarray] = field(default_factory=list)

    @property
    def iterations(self) -> int:
        """Steps taken."""
        return len(self.steps)

    @property
    def newton(self) -> int:
        """Steps to the Newton point."""
        return self.steps.count("newton")


class Damping:
    """lambda of H = J^T J + lambda I [T10, eq. 21], relative to the mean diagonal of J^T J."""

    def __init__(self, options: T10Options) -> None:
        self.options = options
        self.value = options.lambda_start if options.damping else 0.0

    def fall(self) -> None:
        self.value /= self.options.lambda_factor
        if self.value < self.options.lambda_least:
            self.value = 0.0

    def rise(self) -> None:
        if self.options.damping:
            self.value = max(self.value * self.options.lambda_factor, self.options.lambda_least)


@dataclass(frozen=True)
class Quadratic:
    """The model (23) within the tangent space: J B, B^T g, lambda; eps = B xi."""

    JB: np.ndarray
    g: np.ndarray
    B: np.ndarray
    kept: np.ndarray
    mean: float

    def newton(self, damping: float) -> tuple[np.ndarray, float, tuple[np.ndarray, bool]]:
        """xi of the Newton point and the decrease it promises [T10, eq. 22, 28]."""
        H = self.JB.T @ self.JB
        size = len(H)
        added = max(damping, size * np.finfo(float).eps)
        while True:
            try:
                factor = cho_factor(H + added * self.mean * np.eye(size), lower=True, check_finite=False)
                break
            except LinAlgError:  # rounding has made a singular J^T J indefinite
                added *= 100
        xi = -cho_solve(factor, self.g, check_finite=False)
        return self.back(xi), -0.5 * float(self.g @ xi), factor

    def chord(self, factor: tuple[np.ndarray, bool], r: np.ndarray) -> np.ndarray:
        """The step for another (weighted) residual r (n, d) with the same H."""
        return self.back(-cho_solve(factor, self.JB.T @ r.ravel(), check_finite=False))

    def cauchy(self, damping: float) -> np.ndarray:
        """xi of the Cauchy point [T10, eq. 24, 28]."""
        Jg = self.JB @ self.g
        square = float(self.g @ self.g)
        return self.back(-self.g * square / max(float(Jg @ Jg) + damping * self.mean * square, 1e-300))

    def back(self, xi: np.ndarray) -> np.ndarray:
        """B xi, (n, d)."""
        full = np.zeros(self.kept.shape)
        full[self.kept] = xi
        return np.einsum("nij,nj->ni", self.B, full)


def minimise(
    system: System,
    x: np.ndarray,
    tolerance: float,
    options: T10Options,
    *,
    weight: np.ndarray,
    size: np.ndarray,
    limit: int,
    patience: int | None = None,
    keep_path: bool = False,
) -> Outcome:
    """From x (n, d) until |size r| <= tolerance; `weight` is D of D r = 0, `size` turns r into m/s.

    `limit` iterations at most, and no more where |r| has not been halved by the last `patience` ones.
    """
    out = Outcome(x)
    damping = Damping(options)
    while True:
        r = system.r(out.x)
        out.history.append(float(np.linalg.norm(size * r)))
        if keep_path:
            out.path.append(out.x)
        if out.history[-1] <= tolerance:
            out.status = SUCCESS
            return out
        slow = patience and out.iterations >= patience and out.history[-1] > 0.5 * out.history[-1 - patience]
        if slow or out.iterations >= limit:
            out.status = EXCEEDED
            return out
        if not _step(system, out, r, damping, options, weight):
            out.status = LOCAL_MINIMUM
            return out


def _step(
    system: System, out: Outcome, r: np.ndarray, damping: Damping, options: T10Options, weight: np.ndarray
) -> bool:
    """One iteration of the pseudocode, in place; whether a better point was found."""
    x = out.x
    now = 0.5 * float(np.sum((weight * r) ** 2))

    def projected(to: np.ndarray, model: LocalModel) -> np.ndarray:
        k = model.cone
        if options.cone_projection and np.any(k):
            u = x[k, 1:] / np.maximum(friction_norm(x[k]), 1e-300)[:, None]
            to[k] = on_cone_edge(to[k], system.b[k], system.mu[k], u)
        return to

    for apex_sticks in (True, False) if options.apex_sticks else (False,):
        model = local_model(
            system,
            x,
            weight**2 * r,
            mixed=options.mixed_jacobian,
            bases=options.tangent_bases,
            apex_sticks=apex_sticks,
        )
        quadratic = _quadratic(system, model, r, weight)
        out.factorisations += 1
        step, promised, factor = quadratic.newton(damping.value)
        x_n = projected(x + step, model)
        rest = weight * system.r(x_n)
        then = 0.5 * float(np.sum(rest**2))
        for _ in range(options.corrections):
            x_m = projected(x_n + quadratic.chord(factor, rest), model)
            rest_m = weight * system.r(x_m)
            after = 0.5 * float(np.sum(rest_m**2))
            if not after < CONTRACTS * then:
                break
            x_n, rest, then = x_m, rest_m, after
        if now - then >= options.accepted * promised and now - then > LEAST_GAIN * now:
            out.x = x_n
            out.steps.append("newton")
            damping.fall()
            return True
        if not model.apex:
            break
    damping.rise()
    x_c = projected(x + quadratic.cauchy(damping.value), model) if options.dogleg else x
    found = dogleg_search(system, x, x_c, x_n, weight, options.edge_aware)
    if not found.objective < (1 - LEAST_GAIN) * now:
        return False
    out.x = found.x
    out.steps.append(("" if found.segment else "cauchy ") + ("edge" if found.edge else "smooth"))
    return True


def _quadratic(system: System, model: LocalModel, r: np.ndarray, weight: np.ndarray) -> Quadratic:
    kept = model.kept
    J = weight.reshape(-1, 1) * system.jacobian(model.F, model.B)
    JB = J if np.all(kept) else J[:, kept.ravel()]
    g = JB.T @ (weight * r).ravel()
    mean = float(np.einsum("ij,ij->", JB, JB)) / JB.shape[1]
    return Quadratic(JB, g, model.B, kept, mean)
