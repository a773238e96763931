"""Runs of classical steppers: contacts by feature, restart, overlap, failure, several bodies, polyhedra."""

from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, StepFailed, Stepper, Trajectory, shapes, simulate, simulate_batch
from implicit_geom.classical import polyhedron_contacts, step
from implicit_geom.rotation import unit
from implicit_geom.run.storage.replay import replay

COAL = "polyhedra against each other need coal (extra `facets`)"


def stack() -> Scene:
    s = Scene(dim=2)
    s.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    s.add("low", shapes.rectangle(0.5, 0.25), mass=1.0, position=(0, 0.26))
    s.add("high", shapes.rectangle(0.5, 0.25), mass=1.0, position=(0.1, 0.83), orientation=0.1)
    s.friction(mu=0.5)
    return s


def boxes() -> Scene:
    s = Scene()
    s.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add("low", shapes.box(0.5, 0.4, 0.25), mass=1.0, position=(0, 0, 0.26))
    turned = {"position": (0.1, 0.05, 0.82), "orientation": unit((1, 0.05, 0.03, 0.2))}
    s.add("high", shapes.box(0.5, 0.3, 0.25), mass=1.0, **turned)
    s.friction(mu=0.5)
    return s


def eggs() -> Scene:
    s = Scene()
    s.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    s.add("low", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.3))
    s.add("high", shapes.ellipsoid(0.4, 0.3, 0.25), mass=1.0, position=(0.1, 0.05, 0.88))
    s.friction(mu=0.5)
    return s


def run(scene: Scene, stepper, duration: float = 0.3, **options) -> Trajectory:
    return simulate(scene, duration=duration, step=0.01, stepper=stepper, progress=False, **options)


def at_rest(r: Trajectory) -> None:
    """The stack lies flat: weights are carried by several contacts a pair, momentum is balanced."""
    assert r.kinetic_energy[-1] < 1e-20
    last = r.contacts[r.contacts["time"] == r.time[-1]]
    ground = last[last["first"] == "ground"]
    assert ground["p_n"].sum() == pytest.approx(2 * 9.81 * 0.01, rel=1e-9)
    assert last[last["first"] == "low"]["p_n"].sum() == pytest.approx(9.81 * 0.01, rel=1e-9)
    assert len(ground) >= r.scene.dim
    keys = list(zip(last["first"], last["second"], last["feature"]))
    assert len(set(keys)) == len(keys)
    assert r.steps["dynamics"].max() < 1e-9
    assert r.steps["residual"].max() < 1e-10


def test_polygons_come_to_rest_on_each_other() -> None:
    at_rest(run(stack(), "stewart-trinkle", 1.0))


@pytest.mark.parametrize("friction", ["pyramid", "ellipsoid"])
@pytest.mark.parametrize("gap", ["linearised", "end"])
def test_polyhedra_come_to_rest_on_each_other(gap: str, friction: str) -> None:
    """Four corners that stick, nearly in one plane, wedge a box: the ellipsoid is solved all the same."""
    pytest.importorskip("coal", reason=COAL)
    how = Stepper(surface="faceted", gap=gap, wrench="start", friction=friction)
    at_rest(run(boxes(), how, 0.8))


def test_missing_coal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing():
        raise SceneError("coal is not installed")

    monkeypatch.setattr(polyhedron_contacts, "require_coal", missing)
    with pytest.raises(SceneError, match="coal"):
        run(boxes(), "stewart-trinkle")


@pytest.mark.parametrize("make", [stack, eggs])
@pytest.mark.parametrize(
    "how", [Stepper.named("stewart-trinkle"), Stepper(friction="pyramid"), Stepper(wrench="start")]
)
def test_resumed_run_repeats_an_unbroken_one(make, how: Stepper, tmp_path: Path) -> None:
    if make is eggs and how.surface == "faceted":
        pytest.importorskip("coal", reason=COAL)
    whole = run(make(), how, 0.2)
    run(make(), how, 0.1).save(tmp_path / "half.h5")
    again = Trajectory.load(tmp_path / "half.h5").resume(duration=0.1)
    for part in ("x", "q", "v", "w"):
        np.testing.assert_array_equal(getattr(again.solves, part), getattr(whole.solves, part))
    for name in ("p_n", "p_t", "gap", "start_gap", "feature", "gap_normal"):
        np.testing.assert_array_equal(again.solves.contacts[name], whole.solves.contacts[name])
    for name in ("dynamics", "gap", "friction", "remainder_energy"):
        np.testing.assert_array_equal(again.steps[name], whole.steps[name])


def test_a_run_may_go_on_with_another_kind_of_stepper() -> None:
    """Residuals of either part are those of its own laws."""
    first = run(stack(), "stewart-trinkle", 0.1)
    both = first.resume(duration=0.1, stepper="implicit-euler")
    back = both.resume(duration=0.1, stepper=Stepper(gap="linearised"))
    assert len(back.steps) == 30
    for name in ("dynamics", "gap", "complementarity", "friction"):
        assert back.steps[name].max() < 1e-9, name


def test_overlap_at_the_start_is_refused() -> None:
    s = stack()
    s.add("third", shapes.disc(0.2), mass=1.0, position=(0.8, 0.15))
    with pytest.raises(SceneError, match=r"'ground' and 'third' overlap by 0\.05 m"):
        run(s, Stepper(gap="linearised"))


@pytest.mark.parametrize(("how", "parts"), [("stewart-trinkle", 1), (Stepper(friction="pyramid"), 2)])
def test_unsolved_problem_fails_loudly(
    how, parts: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A linearised step fails at once; one that looks at its end is halved first. Both can be replayed."""
    calls = []

    def unsolved(*_):
        calls.append(1)
        return None, 0, 1.0, "the complementarity problem is not solved (secondary ray)"

    with monkeypatch.context() as patch:
        patch.setattr(step, "solve_pyramids", unsolved)
        patch.setattr(step, "single_contact", lambda *_: None)
        with pytest.raises(StepFailed, match="not solved") as failed:
            run(stack(), how)
    assert (len(calls) > 1) == (parts > 1)
    assert failed.value.history[0][-1] == 1.0  # the error of the problem that was not solved
    failed.value.write(tmp_path / "step.json")
    assert replay(tmp_path / "step.json").solves
    recorded = failed.value.run
    assert recorded.failed
    assert recorded.steps["status"][-1] == "failed"


def test_batch_takes_classical_steppers() -> None:
    batch = simulate_batch(
        stack(), {"friction.mu": [0.2, 0.5]}, duration=0.1, step=0.01, stepper="stewart-trinkle"
    )
    alone = run(stack(), "stewart-trinkle", 0.1)
    np.testing.assert_array_equal(batch["high"].position[1], alone["high"].position)


def test_fast_bodies_do_not_pass_through_each_other() -> None:
    """A bullet and a thin plate: stopped by the linearised gap; halved where the gap is that of the end."""
    s = Scene(dim=2, gravity=(0, 0))
    s.add("plate", shapes.rectangle(0.01, 1.0), mass=100.0, position=(1, 0))
    s.add("bullet", shapes.disc(0.02), mass=0.01, position=(0.5, 0), velocity=(200, 0))
    for how in ("stewart-trinkle", Stepper(friction="pyramid"), Stepper(gap="linearised")):
        r = run(s, how, 0.03)
        assert np.all(r["bullet"].position[:, 0] < r["plate"].position[:, 0])
