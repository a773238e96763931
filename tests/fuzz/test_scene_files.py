"""Random scene and sweep files are read, or refused in one printable line."""

from __future__ import annotations

from implicit_geom.experiments.fuzz.scene_files import PLANE, SCENE, SWEEP, TEXT, Case, cases, check
from implicit_geom.scene.scene_file import read_scene


def test_random_files_are_clean() -> None:
    """Mutations of good files and tables of the format's words: 500 of them."""
    bad = {case.text: told for case in cases(seed=0, count=500) if (told := check(case))}
    assert not bad


def test_the_files_that_are_mutated_are_good(tmp_path) -> None:
    """Without a mutation they are read."""
    for text in (SCENE, PLANE, TEXT):
        (tmp_path / "scene.toml").write_text(text)
        read_scene(tmp_path / "scene.toml")
    assert check(Case("sweep", SWEEP)) == ""


def test_a_case_that_is_not_clean_is_found() -> None:
    """The judge sees other errors and messages that are no line."""
    from implicit_geom.experiments.fuzz import judge

    assert judge.verdict(lambda: None) == ""
    assert "raw KeyError" in judge.verdict(lambda: {}["a"])

    def hang() -> None:
        while True:
            pass

    assert "still at it" in judge.verdict(hang, hangs=0.2)
