"""`implicit-geom reproduce`, `bench` and `demo`: what they write, print and return."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from implicit_geom import experiments
from implicit_geom.commands import demo
from implicit_geom.experiments import benchmarks
from implicit_geom.experiments.check import Check, at_least, at_most
from implicit_geom.experiments.runner import read_csv, write_csv
from implicit_geom.studies.figures import blank


def parabola(bound: float) -> SimpleNamespace:
    """An experiment that samples x^2 and claims its largest value."""
    drawn: list[str] = []

    def run(params):
        x = np.linspace(0, 1, params["points"])
        names = np.array(["a"] * params["points"])
        return {"curve": {"x": x, "y": x**2 / 3, "name": names, "count": np.arange(params["points"])}}

    def check(tables) -> list[Check]:
        assert not drawn
        return [at_most("largest value", tables["curve"]["y"].max(), bound, "m")]

    def plot(tables):
        drawn.append("figure")
        figure, axis = blank(1, 1, (4, 3))
        axis.plot(tables["curve"]["x"], tables["curve"]["y"])
        return {"figure": figure}

    return SimpleNamespace(
        TITLE="a parabola", PARAMS={"points": 7}, QUICK={"points": 3}, run=run, check=check, plot=plot
    )


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"good": parabola(0.5), "bad": parabola(0.1)}
    monkeypatch.setattr(experiments, "REGISTRY", made)
    monkeypatch.setattr(benchmarks, "REGISTRY", made)


def test_list(call, registry, folder: Path) -> None:
    """--list names every experiment and writes nothing."""
    for command in ("reproduce", "bench"):
        outcome = call(command, "--list")
        assert outcome.status == 0
        assert "good" in outcome.out
        assert "a parabola" in outcome.out
    assert list(folder.iterdir()) == []


def test_good_experiment(call, registry, folder: Path) -> None:
    """A passing experiment: status 0, its numbers printed, tables and figures written."""
    outcome = call("reproduce", "good", "-o", "out")
    assert outcome.status == 0
    assert "PASS  largest value: 0.333333 m (bound 0.5 m)" in outcome.out
    assert sorted(p.name for p in (folder / "out/good").iterdir()) == [
        "curve.csv",
        "figure.pdf",
        "figure.png",
    ]
    assert len(read_csv(folder / "out/good/curve.csv")["x"]) == 7


def test_failed_check_draws_nothing(call, registry, folder: Path) -> None:
    """A failing experiment: status 1, the measured number printed, the table kept, no figure."""
    outcome = call("reproduce", "all", "--quick", "-o", "out")
    assert outcome.status == 1
    assert "FAIL  largest value: 0.333333 m (bound 0.1 m)" in outcome.out
    assert "1 of 2 passed" in outcome.out
    assert [p.name for p in (folder / "out/bad").iterdir()] == ["curve.csv"]
    assert len(read_csv(folder / "out/good/curve.csv")["x"]) == 3


def test_tables_keep_every_digit(tmp_path: Path) -> None:
    """A table read back is the table written: floats to the last bit, whole numbers, text."""
    table = {
        "x": np.array([1 / 3, np.nan, np.inf]),
        "n": np.array([1, 2, 3]),
        "s": np.array(["a,b", "c", ""]),
    }
    write_csv(tmp_path / "t.csv", table)
    back = read_csv(tmp_path / "t.csv")
    for name, column in table.items():
        assert back[name].dtype.kind == column.dtype.kind
        np.testing.assert_array_equal(back[name], column)
    with pytest.raises(ValueError, match="equally long"):
        write_csv(tmp_path / "t.csv", {"x": np.zeros(2), "y": np.zeros(3)})


def test_nan_never_passes() -> None:
    """A measured NaN fails either kind of bound."""
    assert not at_most("x", float("nan"), 1.0).passed
    assert not at_least("x", float("nan"), 1.0).passed
    assert at_least("x", 2.0, 1.0).passed


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The demo, shortened: the disc keeps its energy, the polygon does not, and a figure is written."""
    demo.show(tmp_path / "demo.png", sides=(8,), duration=0.6)
    rows = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert float(rows["implicit disc"].split()[2]) < 1e-12
    assert float(rows["8-gon"].split()[1]) > 5  # per cent
    assert (tmp_path / "demo.png").stat().st_size > 10_000
