"""How long until something moves: import, first step, demo, each in processes of their own.

    import       `import implicit_geom`
    cold         from there to the end of the first step of a new scene, with an empty folder of compiled code
    warm         the same, with the code of an earlier process in that folder
    demo         the command `implicit-geom demo` from its start, with an empty folder

Medians of a few processes, with a profile: seconds by package of the import (`-X importtime`, their own
modules' time), and by stage of the first step. Python's own bytecode and matplotlib's list of fonts are there
already. A busy machine makes all of it longer, in proportion.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time as clock
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from implicit_geom.experiments.benchmarks.timing import conditions, judged, remarks
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.comparison import Table, columns
from implicit_geom.experiments.figures import BLUE, GREY, ORANGE, PAGE, label, panels, paper
from implicit_geom.machine.availability import SWITCH
from implicit_geom.machine.disk import FOLDER

TITLE = "start-up in fresh processes: import, first step with and without compiled code on disk, demo"
PARAMS: dict[str, Any] = {"repeats": 5, "demo": True, "timed": True}
QUICK: dict[str, Any] = {"repeats": 1, "demo": False, "timed": False}

BARS = {"import": 0.5, "cold": 2.0, "warm": 0.3, "demo": 10.0}  # s
TOP = 10  # packages listed

# what a process of its own does; the functions of STAGES are timed where they are called
STAGES = {
    "model": ("implicit_geom.run.march", "Model"),
    "stepper": ("implicit_geom.run.march", "make_stepper"),
    "overlap at the start": ("implicit_geom.run.march", "check_overlap"),
    "equations to LLVM": ("implicit_geom.compiled.library", "_lowered"),
    "march to LLVM": ("implicit_geom.compiled.library", "emit_march"),
    "LLVM to machine code": ("implicit_geom.machine.object_cache", "_compile"),
    "code loaded": ("implicit_geom.machine.object_cache", "LoadedCode"),
    "hash of the sources": ("implicit_geom.machine.object_cache", "_made_from"),
}
PROGRAM = """
import json, sys, time
clock = time.perf_counter
begun = clock()
import implicit_geom
imported = clock()
from implicit_geom import shapes
from importlib import import_module
spent = {}
def timed(label, call):
    def wrapper(*arguments, **options):
        started = clock()
        try:
            return call(*arguments, **options)
        finally:
            spent[label] = spent.get(label, 0.0) + clock() - started
    return wrapper
started = clock()
for label, (module, name) in json.loads(sys.argv[1]).items():
    module = import_module(module)
    setattr(module, name, timed(label, getattr(module, name)))
spent["import of what is left"] = clock() - started
scene = implicit_geom.Scene(gravity=(0, 0, -9.81))
scene.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
scene.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.3))
scene.friction(mu=0.4)
run = implicit_geom.simulate(scene, duration=0.01, step=0.01, progress=False)
done = clock()
end = run["egg"].position[-1].tolist() + run["egg"].velocity[-1].tolist()
print(json.dumps({"import": imported - begun, "step": done - imported, "spent": spent, "end": end}))
"""


def run(params: dict[str, Any]) -> dict[str, Table]:
    rows: list[tuple[str, float]] = []
    stages: dict[str, Counter[str]] = {"cold": Counter(), "warm": Counter()}
    ends = []
    for _ in range(params["repeats"]):
        with tempfile.TemporaryDirectory() as folder:
            for case, spent in stages.items():
                found = json.loads(_python(folder, "-c", PROGRAM, json.dumps(STAGES)).stdout)
                rows += [("import", found["import"]), (case, found["step"])]
                found["spent"]["the rest"] = found["step"] - sum(found["spent"].values())
                spent.update(found["spent"])
                ends.append(found["end"])
    rows += [("demo", _demo()) for _ in range(max(params["repeats"] // 2, 1)) if params["demo"]]
    profile = [
        (case, stage, spent[stage] / params["repeats"]) for case, spent in stages.items() for stage in spent
    ]
    return {
        "times": columns(("case", "seconds"), rows),
        "stages": columns(("case", "stage", "seconds"), profile),
        "packages": columns(("package", "seconds"), _packages()),
        "ends": {"difference": np.max(np.abs(np.array(ends) - ends[0]), axis=1)},
        "conditions": conditions(timed=params["timed"]),
    }


def _python(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own with compiled code in that folder."""
    environment = {**os.environ, FOLDER: folder, SWITCH: "1"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, check=True, capture_output=True, text=True
    )


def _demo() -> float:
    with tempfile.TemporaryDirectory() as folder:
        started = clock.perf_counter()
        _python(folder, "-m", "implicit_geom", "demo")
        assert (Path(folder) / "demo.png").exists()
        return clock.perf_counter() - started


def _packages() -> list[tuple[str, float]]:
    """Seconds by package, of the modules' own code, the longest first."""
    with tempfile.TemporaryDirectory() as folder:
        text = _python(folder, "-X", "importtime", "-c", "import implicit_geom").stderr
    total: Counter[str] = Counter()
    # only what comes after the interpreter's own start, whose last import is `site`
    for line in text[text.rindex("| site\n") :].splitlines()[1:]:
        own, _, name = line.removeprefix("import time:").split("|")
        package = name.strip().split(".")[0]
        total["standard library" if package in sys.stdlib_module_names else package] += 1e-6 * int(own)
    return total.most_common(TOP)


def medians(times: Table) -> dict[str, float]:
    """By case, s."""
    cases = [case for case in BARS if case in times["case"]]
    return {case: float(np.median(times["seconds"][times["case"] == case])) for case in cases}


def report(tables: dict[str, Table]) -> str:
    """Medians with their bars, then where the time goes."""
    times = tables["times"]
    lines = [f"  {'s':12}{'median':>9}{'least':>9}{'most':>9}{'bar':>7}"]
    for case, median in medians(times).items():
        all_of_it = times["seconds"][times["case"] == case]
        lines.append(f"    {case:10}{median:9.3f}{all_of_it.min():9.3f}{all_of_it.max():9.3f}{BARS[case]:7g}")
    stages = tables["stages"]
    for case in ("cold", "warm"):
        chosen = stages["case"] == case
        lines.append(f"  first step, {case}: mean by stage, s")
        for i in sorted(np.flatnonzero(chosen), key=lambda i: -stages["seconds"][i]):
            lines.append(f"    {stages['stage'][i]:24}{stages['seconds'][i]:9.3f}")
    lines.append("  import by package, s")
    for name, seconds in zip(tables["packages"]["package"].tolist(), tables["packages"]["seconds"].tolist()):
        lines.append(f"    {name:24}{seconds:9.3f}")
    return "\n".join([*lines, *remarks(tables["conditions"])])


def check(tables: dict[str, Table]) -> list[Check]:
    finite = np.isfinite(tables["times"]["seconds"])
    apart = np.max(tables["ends"]["difference"])
    checks = [
        at_least("share of finite times", np.mean(finite), 1.0),
        at_most("first step, any process from any other", apart, 0.0),
    ]
    if judged(tables["conditions"]):
        for case, median in medians(tables["times"]).items():
            checks.append(at_most(f"{case}, median", median, BARS[case], "s"))
    return checks


@paper
def plot(tables: dict[str, Table]) -> dict[str, Any]:
    """(a) medians and their bars, (b) stages of the first step, (c) packages of the import."""
    figure, axes = panels(1, 3, (PAGE, 2.8))
    found = medians(tables["times"])
    axis = axes[0, 0]
    axis.barh(list(found), list(found.values()), color=BLUE, height=0.6)
    for row, case in enumerate(found):
        axis.plot([BARS[case]] * 2, [row - 0.4, row + 0.4], color="black")
        beyond = 1.15 * max(found[case], BARS[case])
        axis.text(beyond, row, f"{found[case]:.2g}", va="center", fontsize=7)
    axis.set(xscale="log", xlim=(0.03, 100))
    label(axis, "a", "median (line: its bar)")
    stages = tables["stages"]
    names = dict.fromkeys(stages["stage"].tolist())
    for offset, case, colour in ((-0.2, "cold", ORANGE), (0.2, "warm", BLUE)):
        by_stage = {s: t for c, s, t in zip(*(stages[k].tolist() for k in stages)) if c == case}
        at = np.arange(len(names)) + offset
        axes[0, 1].barh(at, [by_stage.get(s, 0.0) for s in names], 0.38, color=colour, label=case)
    axes[0, 1].set_yticks(range(len(names)), list(names))
    axes[0, 1].legend(loc="lower right")
    label(axes[0, 1], "b", "first step by stage")
    packages = tables["packages"]
    seen = packages["seconds"] > 5e-3
    axes[0, 2].barh(packages["package"][seen], packages["seconds"][seen], color=GREY, height=0.6)
    label(axes[0, 2], "c", "import by package")
    for axis in axes[0]:
        axis.set(xlabel="s")
        axis.invert_yaxis()
        axis.tick_params(labelsize=7)
        axis.grid(visible=False, axis="y")
    return {"start_up": figure}
