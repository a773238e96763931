"""`implicit-geom compare` and `advise`: tables, files, exit status."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_compare_writes_table_and_figure(call, scene, folder: Path) -> None:
    """Status 0, the table printed, CSV and figure in the folder; fields of a stepper after colons."""
    names = "implicit-rattle,stewart-trinkle:facets=32:directions=4"
    outcome = call("compare", "egg.toml", "--steppers", names, "-o", "out", "--duration", "0.05")
    assert outcome.status == 0, outcome
    assert outcome.err == ""
    assert "stewart-trinkle:facets=32:directions=4" in outcome.out
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["comparison.csv", "comparison.png"]


def test_compare_all_attributes(call, scene, folder: Path) -> None:
    """All sixteen, and what each switch adds."""
    outcome = call("compare", "egg.toml", "--all", "--duration", "0.05", "-o", "out", "--facets", "30")
    assert outcome.status == 0, outcome
    assert "SGWF" in outcome.out
    assert "surface" in outcome.out
    assert len((folder / "out" / "comparison.csv").read_text().splitlines()) == 17
    assert len((folder / "out" / "attribution.csv").read_text().splitlines()) == 11


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--steppers", "implicit-eular"), "did you mean 'implicit-euler'"),
        (("--steppers", "implicit-euler:facets"), "must be field=value"),
        (("--steppers", "implicit-euler", "--all"), "give one of them"),
        (("--facets", "3"), "goes with --all"),
        (("--reference", "none.h5"), "no such file"),
        (("--step", "-1"), "step = -1"),
    ],
)
def test_compare_bad_input(arguments: tuple[str, ...], words: str, call, scene, folder: Path) -> None:
    """One line, status 2, nothing written."""
    outcome = call("compare", "egg.toml", *arguments)
    assert outcome.status == 2, outcome
    assert words in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (folder / "compared").exists()


def test_advise_names_a_stepper_or_fails(call, scene) -> None:
    """Status 0 and the advice; status 1 where none meets the tolerance; 2 for a bad one."""
    good = call("advise", "egg.toml", "--tolerance", "0.05", "--steppers", "implicit-rattle")
    assert good.status == 0, good
    assert "advice: implicit-rattle, step =" in good.out
    none = call("advise", "egg.toml", "--tolerance", "1e-11", "--steppers", "implicit-euler")
    assert none.status == 1
    assert "no trial meets the tolerance 1e-11" in none.out
    none = call("advise", "egg.toml", "--tolerance", "1e-15", "--steppers", "implicit-euler")
    assert none.status == 1
    assert "no trial can be judged to 1e-15" in none.out
    assert call("advise", "egg.toml", "--tolerance", "0").status == 2


def test_the_scene_file_is_kept(call, scene: str, folder: Path) -> None:
    """A scene file that has the name of an output is not overwritten."""
    (folder / "compared").mkdir()
    source = (folder / "egg.toml").rename(folder / "compared" / "comparison.csv")
    outcome = call("compare", str(source))
    assert outcome.status == 2
    assert "is the input file" in outcome.err
    assert source.read_text() == scene
