"""Rows and Jacobian of a step's NCP [C07, eq. 10] from those of its bodies and contacts, as LLVM code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from implicit_geom.compiled.tables import GroupSlot, SystemSlot
from implicit_geom.machine.code_values import Array, Integer, Number
from implicit_geom.machine.code_writer import CodeWriter, ModuleWriter


def emit_assembly(m: ModuleWriter, velocities: int) -> None:
    """Add `residual(problem, z)` and `linearise(problem, z)` to a module: F, and F with J, at z."""
    _emit_residual(m, velocities)
    _emit_linearise(m, velocities)


@contextmanager
def groups(c: CodeWriter, problem: Array) -> Iterator[Array]:
    """Loop over the tables of a problem's groups."""
    tables = problem.array(SystemSlot.GROUP_TABLES, "w")
    with c.loop(problem[SystemSlot.GROUPS]) as g:
        yield tables.offset(g * len(GroupSlot))


def gather(c: CodeWriter, problem: Array, group: Array, i: Integer, z: Array) -> tuple[Array, Integer]:
    """The inputs of contact i of a group, copied from z; and where its own unknowns start in z."""
    inputs = problem.array(SystemSlot.INPUTS, "n")
    n = group[GroupSlot.INPUTS]
    positions = group.array(GroupSlot.GATHER, "w").offset(i * n)
    with c.loop(n) as j:
        inputs[j] = z[positions[j]]
    return inputs, positions[n - group[GroupSlot.OWN]]


def _emit_residual(m: ModuleWriter, velocities: int) -> None:
    """F at z."""
    with m.function("residual", "wn") as (c, (p, z)):
        F, rows = p.array(SystemSlot.F, "n"), p.array(SystemSlot.ROWS, "n")
        parameters = p.array(SystemSlot.MOMENTUM_PARAMETERS, "n")
        c.fill(
            F.offset(p[SystemSlot.BODIES] * velocities),
            p[SystemSlot.SIZE] - p[SystemSlot.BODIES] * velocities,
            0.0,
        )
        with c.loop(p[SystemSlot.BODIES]) as b:
            own = parameters.offset(b * p[SystemSlot.MOMENTUM_STRIDE])
            first = b * velocities
            c.call_address(p[SystemSlot.MOMENTUM_ROWS], z.offset(first), own, F.offset(first))
        with groups(c, p) as g, c.loop(g[GroupSlot.COUNT]) as i:
            inputs, _ = gather(c, p, g, i, z)
            own = g.array(GroupSlot.PARAMETERS, "n").offset(i * g[GroupSlot.N_PARAMETERS])
            c.call_address(g[GroupSlot.ROWS_ONLY], inputs, own, rows)
            with c.when(g[GroupSlot.ACTIVE] >= 0):
                off = c.number(1.0) - _active(g, i)
                with c.loop(g[GroupSlot.ROWS]) as r:
                    rows[r] = rows[r] * _active(g, i)
                with c.loop(g[GroupSlot.OWN]) as k:
                    rows[k] = rows[k] + off * inputs[g[GroupSlot.INPUTS] - g[GroupSlot.OWN] + k]
            positions = g.array(GroupSlot.SCATTER, "w").offset(i * g[GroupSlot.ROWS])
            with c.loop(g[GroupSlot.ROWS]) as r:
                F.add(positions[r], rows[r])


def _active(g: Array, i: Integer) -> Number:
    return g.array(GroupSlot.END, "n").offset(i * g[GroupSlot.N_END])[g[GroupSlot.ACTIVE]]


def _emit_linearise(m: ModuleWriter, velocities: int) -> None:
    """F and J at z."""
    with m.function("linearise", "wn") as (c, (p, z)):
        N, F, J = p[SystemSlot.SIZE], p.array(SystemSlot.F, "n"), p.array(SystemSlot.J, "n")
        rows, entries = p.array(SystemSlot.ROWS, "n"), p.array(SystemSlot.ENTRIES, "n")
        c.fill(F, N, 0.0)
        c.fill(J, N * N, 0.0)
        parameters = p.array(SystemSlot.MOMENTUM_PARAMETERS, "n")
        with c.loop(p[SystemSlot.BODIES]) as b:
            first = b * velocities
            own = parameters.offset(b * p[SystemSlot.MOMENTUM_STRIDE])
            c.call_address(p[SystemSlot.MOMENTUM], z.offset(first), own, rows, entries)
            with c.loop(velocities) as i:
                F[first + i] = rows[i]
                with c.loop(velocities) as j:
                    J[(first + i) * N + first + j] = entries[j * velocities + i]
        with groups(c, p) as g, c.loop(g[GroupSlot.COUNT]) as i:
            inputs, own_start = gather(c, p, g, i, z)
            own = g.array(GroupSlot.PARAMETERS, "n").offset(i * g[GroupSlot.N_PARAMETERS])
            c.call_address(g[GroupSlot.LINEAR], inputs, own, rows, entries)
            with c.when(g[GroupSlot.ACTIVE] >= 0):
                _switch_off(c, g, i, inputs, rows, entries, J, own_start, N)
            n_rows, n_entries = g[GroupSlot.ROWS], g[GroupSlot.ENTRIES]
            positions = g.array(GroupSlot.SCATTER, "w").offset(i * n_rows)
            with c.loop(n_rows) as r:
                F.add(positions[r], rows[r])
            places = g.array(GroupSlot.PLACES, "w").offset(i * n_entries)
            with c.loop(n_entries) as e:
                J.add(places[e], entries[e])


def _switch_off(
    c: CodeWriter,
    g: Array,
    i: Integer,
    inputs: Array,
    rows: Array,
    entries: Array,
    J: Array,
    start: Integer,
    N: Integer,
) -> None:
    """Where a contact takes no part: its unknowns stay zero and the bodies feel nothing of it."""
    off = _active(g, i) < 0.5
    with c.when(off.any()):
        with c.loop(g[GroupSlot.ROWS]) as r:
            rows[r] = off.select(0.0, rows[r])
        with c.loop(g[GroupSlot.ENTRIES]) as e:
            entries[e] = off.select(0.0, entries[e])
        own, n = g[GroupSlot.OWN], g[GroupSlot.INPUTS]
        with c.loop(own) as k:
            rows[k] = off.select(inputs[n - own + k], rows[k])
            J.add((start + k) * N + start + k, off.select(1.0, 0.0))
