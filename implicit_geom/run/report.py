"""`run.summary()`: a few lines of text on a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from implicit_geom.geometry.faces import faces_without_torsion
from implicit_geom.interface.words import shown
from implicit_geom.model.model import Model
from implicit_geom.model.solve_arrays import ENTRIES, STATUSES
from implicit_geom.run.record.island_gain import largest_island_gain

NAMED = 3  # pairs and reasons that are named, the others are counted
SLOW = 3.0  # of the mean of the steps: steps that took longer are named


def summary(run: Any) -> str:
    """Steps, iterations, penetration, energy, time taken; what was out of the ordinary."""
    energy, count = run.energy, len(run.time) - 1
    taken = sum(call.steps for call in run.calls)
    # the zero of the potential is arbitrary: a start near zero is no measure of the energy at hand
    scale = max(abs(energy[0]), float(run.kinetic_energy.max(initial=0.0)))
    change = f" ({(energy[-1] - energy[0]) / scale:+.3g} relative)" if scale > 0 else ""
    iterations = run.taken["iterations"][:count] if count else np.zeros(1)
    contacts = len(run.contacts) if "contacts" in run.__dict__ else sum(map(len, run.contact_blocks()))
    lines = [
        f"time        {run.time[0]:g} to {run.time[-1]:g} s in {taken} steps: {_statuses(run)}",
        f"recorded    {count} of them: every {_ordinal(run.options.record)} and the last; iterations and "
        "contacts are of these, all else is of all steps",
        f"stepper     {_steppers(run)}{_guarded(run)}",
        f"iterations  median {np.median(iterations):g}, most {iterations.max():g} a step",
        f"contacts    {contacts} rows, deepest penetration {run.max_penetration:.3g} m",
        f"energy      {energy[0]:.9g} J to {energy[-1]:.9g} J{change}",
        *_balance(run, scale),
        *(_islands(run) if count == taken else []),
        *_time(run),
        *(f"notice      {text}" for text in dict.fromkeys(n for call in run.calls for n in call.notices)),
        *_faces(run),
    ]
    if count == taken:
        del lines[1]
    if run.failed:
        lines.insert(0, f"FAILED      {run.failure}")
    return "\n".join(lines)


def line(run: Any) -> str:
    """`repr` of a run: duration, steps, stepper, bodies and how it ended; nothing is computed for it."""
    try:
        names = [shown(name) for name in run.names]
        more = f", ... {len(names) - NAMED} more" if len(names) > NAMED else ""
        bodies = f"{', '.join(names[:NAMED])}{more}"
        steps = f"{sum(call.steps for call in run.calls)} steps, {_steppers(run)}"
        if run.failed:
            return f"<Trajectory of {bodies}: {steps}, FAILED: {run.failure}>"
        return f"<Trajectory of {bodies}: {run.options.duration:g} s in {steps}, {_statuses(run)}>"
    except Exception:  # (a debugger may show one that is only half made)
        return "<Trajectory>"


def _statuses(run: Any) -> str:
    counts = {s: sum(call.statuses.get(s, 0) for call in run.calls[:-1]) for s in STATUSES if s != "failed"}
    last = run.calls[-1].statuses
    told = {s: counts.get(s, 0) + last.get(s, 0) for s in STATUSES}  # (a step that failed is the last one)
    return ", ".join(f"{n} {s}" for s, n in told.items() if n)


def _ordinal(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _steppers(run: Any) -> str:
    """The stepper; which steps by which where there were several."""
    parts: list[list[Any]] = []
    for call in run.calls:
        if parts and parts[-1][0] == call.stepper:
            parts[-1][2] += call.steps
        elif call.steps or not parts:
            parts.append([call.stepper, call.first, call.first + call.steps - 1])
    if len(parts) == 1:
        return str(run.options.stepper)
    return ", ".join(f"{name} (steps {first} to {last})" for name, first, last in parts)


def _guarded(run: Any) -> str:
    """How many steps were composed, and how many the guard took in another way."""
    steps = sum(call.steps for call in run.calls)
    if run.options.switches.integrator == "euler" or not steps:
        return ""
    parts = []
    if run.options.name == "implicit-rattle-4":
        parts.append(f"{sum(call.fourth for call in run.calls)} steps of order four")
    ways = {"composed": "composed", "substeps": "in sub-steps", "euler": "in Euler's form"}
    counts = {words: sum(call.guards.get(way, 0) for call in run.calls) for way, words in ways.items()}
    told = ", ".join(f"{n} {words}" for words, n in counts.items() if n)
    share = sum(counts.values()) / steps
    parts.append(f"{share:.2%} of the steps guarded" + (f" ({told})" if told else ""))
    return ": " + ", ".join(parts)


def _balance(run: Any, scale: float) -> list[str]:
    """The sums of the ledger; the remainder also over the energy at hand, and that of the worst step."""
    run.assess()
    count = len(run.time) - 1
    each = {name: run.taken[f"{name}_energy"][:count] for name in ENTRIES}
    sums = {name: float(values.sum()) for name, values in each.items()}
    lost = f"lost in friction {sums['friction']:.6g} J, in impacts {sums['impact']:.6g} J"
    relative = ""
    if scale > 0 and count:
        worst = float(np.max(each["remainder"])) / scale
        where = "a step" if run.options.record == 1 else f"{run.options.record} steps"
        relative = f" ({sums['remainder'] / scale:+.2g} relative, largest gain in {where} {worst:.2g})"
    return [
        f"ledger      work {sums['work']:.6g} J, {lost}",
        f"remainder   {sums['remainder']:+.3g} J{relative}: the error of the steps",
    ]


def _islands(run: Any) -> list[str]:
    """The largest gain of an island of contacts in a step, over its own energy, and where."""
    found = largest_island_gain(Model(run.scene), run.initial, run.log, run.options.tolerance)
    if found is None:
        return ["islands     none created energy"]
    names = [shown(run.names[b]) for b in found.bodies]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    where = f"{', '.join(names[:NAMED])}{more}, {found.time:.6g} s"
    return [f"islands     largest gain {found.share:.2g} of its energy: {where}"]


def _time(run: Any) -> list[str]:
    """Wall time, steps outside compiled code with their reasons, and the slowest steps of all."""
    total, steps = (sum(getattr(c, name) for c in run.calls) for name in ("total_time", "step_time"))
    if any(call.compiled is None for call in run.calls):
        return [f"wall time   {steps:.3g} s for the steps alone; of the rest this file knows nothing"]
    lines = [f"wall time   {total:.3g} s in all: {steps:.3g} s for the steps, the rest set-up and recording"]
    reasons: dict[str, int] = {}
    for call in run.calls:
        for reason, (n, _) in call.outside.items():
            reasons[reason] = reasons.get(reason, 0) + int(n)
    outside = sum(reasons.values())
    told = sorted(reasons.items(), key=lambda item: -item[1])
    words = ", ".join(f"{n} {reason}" for reason, n in told[:NAMED])
    words += f", {sum(n for _, n in told[NAMED:])} others" if len(told) > NAMED else ""
    inside = sum(call.compiled for call in run.calls)
    lines.append(f"compiled    {inside} steps; {outside} left machine code{f' ({words})' if words else ''}")
    mean = steps / max(sum(call.steps for call in run.calls), 1)
    slowest = sorted((row for call in run.calls for row in call.slowest), reverse=True)[:NAMED]
    if slow := [row for row in slowest if row[0] > SLOW * mean]:
        each = "; ".join(f"{s:.3g} s at t = {t:.6g} s ({cause})" for s, t, cause in slow)
        lines.append(f"slowest     {each}")
    return lines


def _faces(run: Any) -> list[str]:
    found = faces_without_torsion(run)
    if not found:
        return []
    names = ", ".join(f"{a!r} and {b!r}" for a, b in found[:NAMED])
    more = f" and {len(found) - NAMED} more pairs" if len(found) > NAMED else ""
    return [
        f"notice      faces of {names}{more} touch with e_r = 0: friction there resists no turning about "
        "the normal; set e_r in metres, about 2/3 of the radius of the face"
    ]
