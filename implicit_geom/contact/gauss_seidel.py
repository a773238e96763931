"""Nonlinear Gauss-Seidel sweeps over the contacts of a linearised step, the impulses of all others held.

    P_c <- proj(P_c - u_c / a_c),      nu <- nu - M^-1 W_c dP_c

where a_c are the contact's own entries on the diagonal of the Delassus matrix. Contacts that share no body
are taken at once. A sweep costs about a hundredth of a factorisation, and a few hundred of them solve most
contacts to three digits; loops of contacts that stick may need any number (see `subproblems`).

M + T need not be positive, so that sweeps would not get anywhere with it: T (nu - nu_0) stays as it is at
the velocities that are given, and what it has changed by in the end is part of the residual.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from implicit_geom.contact.coulomb_projection import project_in_place
from implicit_geom.contact.linearised import FrictionProblem, Impulses

LOOK = 10  # sweeps between two residuals
LOST = 1e6  # a residual that is not worth more


class ContactColour(NamedTuple):
    """Contacts that share no body."""

    own: np.ndarray  # where their impulses are
    ends: np.ndarray  # where the velocities of their bodies are
    V: np.ndarray
    push: np.ndarray  # what impulses do to the velocities
    u0: np.ndarray
    stiffness: np.ndarray  # 1 / a_c
    mu: np.ndarray


class SweepResult(NamedTuple):
    """Velocities and impulses after some sweeps."""

    nu: np.ndarray
    P: Impulses
    residual: float  # the largest of
    violations: list[np.ndarray]  # each contact's law and what its turning has changed by, over its scale


class GaussSeidel:
    """Sweeps over the contacts of a linearised step."""

    def __init__(self, step: FrictionProblem) -> None:
        self.step = step
        nv = step.pattern.velocities
        self.inverse = np.linalg.inv(step.momentum.reshape(-1, nv, nv).swapaxes(1, 2))
        self.turns = any(bool(np.any(T)) for T in step.T)
        self.sizes = [p.shape for p in step.start]
        self.first = np.concatenate([[0], np.cumsum([p.size for p in step.start])])
        self.colours = [self._colour(k, chosen) for k, chosen in step.pattern.colours]

    def _colour(self, k: int, chosen: np.ndarray) -> ContactColour:
        step, g = self.step, self.step.pattern.groups[k]
        W, nv = step.W[k][chosen], step.pattern.velocities
        push = np.concatenate(
            [
                -self.inverse[body] @ W[:, nv * j : nv * (j + 1)]
                for j, body in enumerate(step.pattern.bodies(g)[chosen].T)
            ],
            axis=1,
        )
        width = W.shape[2]
        own = self.first[k] + chosen[:, None] * width + np.arange(width)
        stiffness = 1 / step.delassus_diagonal[k][chosen]
        parts = (step.V[k][chosen], push, step.u0[k][chosen], stiffness, step.mu[k][chosen])
        return ContactColour(own, g.at_ends[chosen], *parts)

    def sweep(self, nu: np.ndarray, P: Impulses, tolerance: float, most: int) -> SweepResult:
        """From impulses, and velocities that say how the contacts have turned, to `tolerance`."""
        step = self.step
        turned = self._turned(nu - step.nu)
        dnu = turned - self._by_mass(step.f(step.nu, P))
        impulses = np.concatenate([p.ravel() for p in P])
        for k in range(1, most + 1):
            self._sweep_once(impulses, dnu)
            if k % LOOK == 0 or k == most:
                P = self._split(impulses)
                violations = step.violations(step.nu + dnu, P)
                far = _largest(violations)
                if far < tolerance or not far < LOST:
                    break
        if self.turns:
            change = self._turned(dnu) - turned
            for g, V, p, r, scale in zip(step.pattern.groups, step.V, P, violations, step.scale, strict=True):
                moved = np.abs((V @ change[g.at_ends][:, :, None])[:, :, 0]) / scale
                np.maximum(r, moved.max(axis=1, initial=0.0) * (p[:, 0] > 0), out=r)
        return SweepResult(step.nu + dnu, P, _largest(violations), violations)

    def _sweep_once(self, impulses: np.ndarray, dnu: np.ndarray) -> None:
        for c in self.colours:
            u = c.u0 + (c.V @ dnu[c.ends][:, :, None])[:, :, 0]
            before = impulses[c.own]
            after = before - u * c.stiffness
            project_in_place(after, c.mu)
            impulses[c.own] = after
            dnu[c.ends] += (c.push @ (after - before)[:, :, None])[:, :, 0]

    def _split(self, impulses: np.ndarray) -> Impulses:
        parts = np.split(impulses, self.first[1:-1])
        return [p.reshape(size) for p, size in zip(parts, self.sizes, strict=True)]

    def _by_mass(self, f: np.ndarray) -> np.ndarray:
        return (self.inverse @ f.reshape(len(self.inverse), -1, 1)).ravel()

    def _turned(self, dnu: np.ndarray) -> np.ndarray:
        """What the turning of the contacts does to the velocities."""
        f = np.zeros_like(dnu)
        if self.turns:
            for g, T in zip(self.step.pattern.groups, self.step.T, strict=True):
                f += np.bincount(g.at_ends.ravel(), (T @ dnu[g.at_ends][:, :, None]).ravel(), f.size)
        return -self._by_mass(f)


def _largest(violations: list[np.ndarray]) -> float:
    return float(np.max([r.max(initial=0.0) for r in violations], initial=0.0))
