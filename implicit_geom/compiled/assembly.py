"""Rows and Jacobian of a system of equations from those of its bodies and contacts, as compiled code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from implicit_geom.compiled.tables import Group, Problem
from implicit_geom.machine.code import Array, Code, Module, Number, Whole


def emit_assembly(m: Module, velocities: int) -> None:
    """Add `residual(problem, z)` and `linearise(problem, z)` to a module: F, and F with J, at z."""
    _emit_residual(m, velocities)
    _emit_linearise(m, velocities)


@contextmanager
def groups(c: Code, problem: Array) -> Iterator[Array]:
    """Loop over the tables of a problem's groups."""
    tables = problem.array(Problem.GROUP_TABLES, "w")
    with c.loop(problem[Problem.GROUPS]) as g:
        yield tables.part(g * len(Group))


def gather(c: Code, problem: Array, group: Array, i: Whole, z: Array) -> tuple[Array, Whole]:
    """The inputs of contact i of a group, copied from z; and where its own unknowns start in z."""
    inputs = problem.array(Problem.INPUTS, "n")
    n = group[Group.INPUTS]
    positions = group.array(Group.GATHER, "w").part(i * n)
    with c.loop(n) as j:
        inputs[j] = z[positions[j]]
    return inputs, positions[n - group[Group.OWN]]


def _emit_residual(m: Module, velocities: int) -> None:
    """F at z."""
    with m.function("residual", "wn") as (c, (p, z)):
        F, rows = p.array(Problem.F, "n"), p.array(Problem.ROWS, "n")
        parameters = p.array(Problem.MOMENTUM_PARAMETERS, "n")
        c.fill(F.part(p[Problem.BODIES] * velocities), p[Problem.SIZE] - p[Problem.BODIES] * velocities, 0.0)
        with c.loop(p[Problem.BODIES]) as b:
            own = parameters.part(b * p[Problem.MOMENTUM_STRIDE])
            first = b * velocities
            c.call_at(p[Problem.MOMENTUM_ROWS], z.part(first), own, F.part(first))
        with groups(c, p) as g, c.loop(g[Group.COUNT]) as i:
            inputs, _ = gather(c, p, g, i, z)
            own = g.array(Group.PARAMETERS, "n").part(i * g[Group.N_PARAMETERS])
            c.call_at(g[Group.ROWS_ALONE], inputs, own, rows)
            with c.when(g[Group.ACTIVE] >= 0):
                off = c.number(1.0) - _active(g, i)
                with c.loop(g[Group.ROWS]) as r:
                    rows[r] = rows[r] * _active(g, i)
                with c.loop(g[Group.OWN]) as k:
                    rows[k] = rows[k] + off * inputs[g[Group.INPUTS] - g[Group.OWN] + k]
            positions = g.array(Group.SCATTER, "w").part(i * g[Group.ROWS])
            with c.loop(g[Group.ROWS]) as r:
                F.add(positions[r], rows[r])


def _active(g: Array, i: Whole) -> Number:
    return g.array(Group.END, "n").part(i * g[Group.N_END])[g[Group.ACTIVE]]


def _emit_linearise(m: Module, velocities: int) -> None:
    """F and J at z."""
    with m.function("linearise", "wn") as (c, (p, z)):
        N, F, J = p[Problem.SIZE], p.array(Problem.F, "n"), p.array(Problem.J, "n")
        rows, entries = p.array(Problem.ROWS, "n"), p.array(Problem.ENTRIES, "n")
        c.fill(F, N, 0.0)
        c.fill(J, N * N, 0.0)
        parameters = p.array(Problem.MOMENTUM_PARAMETERS, "n")
        with c.loop(p[Problem.BODIES]) as b:
            first = b * velocities
            own = parameters.part(b * p[Problem.MOMENTUM_STRIDE])
            c.call_at(p[Problem.MOMENTUM], z.part(first), own, rows, entries)
            with c.loop(velocities) as i:
                F[first + i] = rows[i]
                with c.loop(velocities) as j:
                    J[(first + i) * N + first + j] = entries[j * velocities + i]
        with groups(c, p) as g, c.loop(g[Group.COUNT]) as i:
            inputs, own_start = gather(c, p, g, i, z)
            own = g.array(Group.PARAMETERS, "n").part(i * g[Group.N_PARAMETERS])
            c.call_at(g[Group.LINEAR], inputs, own, rows, entries)
            with c.when(g[Group.ACTIVE] >= 0):
                _switch_off(c, g, i, inputs, rows, entries, J, own_start, N)
            n_rows, n_entries = g[Group.ROWS], g[Group.ENTRIES]
            positions = g.array(Group.SCATTER, "w").part(i * n_rows)
            with c.loop(n_rows) as r:
                F.add(positions[r], rows[r])
            places = g.array(Group.PLACES, "w").part(i * n_entries)
            with c.loop(n_entries) as e:
                J.add(places[e], entries[e])


def _switch_off(
    c: Code, g: Array, i: Whole, inputs: Array, rows: Array, entries: Array, J: Array, start: Whole, N: Whole
) -> None:
    """Where a contact takes no part: its unknowns stay zero and the bodies feel nothing of it."""
    off = _active(g, i) < 0.5
    with c.when(off.any()):
        with c.loop(g[Group.ROWS]) as r:
            rows[r] = off.select(0.0, rows[r])
        with c.loop(g[Group.ENTRIES]) as e:
            entries[e] = off.select(0.0, entries[e])
        own, n = g[Group.OWN], g[Group.INPUTS]
        with c.loop(own) as k:
            rows[k] = off.select(inputs[n - own + k], rows[k])
            J.add((start + k) * N + start + k, off.select(1.0, 0.0))
