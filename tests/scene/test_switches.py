"""`Stepper` is checked when it is made, and means the same by name, by fields, in scene files and on disk."""

from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, Stepper, Trajectory, read_scene, shapes, simulate
from implicit_geom.commands.cli import main
from implicit_geom.scene.options import SimulationOptions

FILE = """
dim = 2
[bodies.ground]
shape = { kind = "halfplane", normal = [0, 1] }
fixed = true
[bodies.disc]
shape = { kind = "disc", r = 1.0 }
mass = 1.0
position = [0, 1]
velocity = [1, 0]
[friction]
mu = 0.4
[simulation]
duration = 0.05
step = 0.01
"""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"surface": "facets"}, "did you mean 'faceted'"),
        ({"gap": "linear"}, "did you mean 'linearised'"),
        ({"wrench": "middle"}, "stepper.wrench = 'middle' is not known; known: end, start"),
        ({"friction": "cone"}, "stepper.friction = 'cone' is not known"),
        ({"integrator": "rk4"}, "stepper.integrator = 'rk4' is not known"),
        ({"facets": 2}, "stepper.facets = 2 must be a whole number, 3 or more"),
        ({"facets": 8.0}, "must be a whole number"),
        ({"directions": 3}, "stepper.directions = 3 must be a whole number, 4 or more"),
        ({"directions": 7}, "must be even"),
        ({"aligned": True}, "take friction = 'pyramid'"),
        ({"aligned": 1, "friction": "pyramid"}, "must be true or false"),
        ({"integrator": "rattle", "gap": "linearised"}, "take integrator = 'euler'"),
        ({"integrator": "rattle-4", "friction": "pyramid"}, "take integrator = 'euler'"),
    ],
)
def test_bad_fields_are_one_line(fields: dict, message: str) -> None:
    with pytest.raises(SceneError, match=message) as error:
        Stepper(**fields)
    assert "\n" not in str(error.value)


def test_names_and_fields_mean_the_same() -> None:
    assert SimulationOptions(1, 0.1, Stepper()).stepper == "implicit-euler"
    assert SimulationOptions(1, 0.1, Stepper(integrator="rattle")).stepper == "implicit-rattle"
    classical = Stepper(surface="faceted", gap="linearised", wrench="start", friction="pyramid")
    assert Stepper.named("stewart-trinkle") == classical
    assert SimulationOptions(1, 0.1, classical).stepper == "stewart-trinkle"
    finer = Stepper.named("stewart-trinkle", facets=1000)
    assert SimulationOptions(1, 0.1, {"name": "stewart-trinkle", "facets": 1000}).stepper == finer
    assert SimulationOptions(**SimulationOptions(1, 0.1, finer).as_dict()).stepper == finer
    with pytest.raises(SceneError, match="did you mean 'facets'"):
        Stepper.named("stewart-trinkle", facet=3)
    with pytest.raises(SceneError, match="did you mean 'stewart-trinkle'"):
        Stepper.named("stewart")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('stepper = "stewart-trinkle"', Stepper.named("stewart-trinkle")),
        (
            '[simulation.stepper]\nname = "stewart-trinkle"\nfacets = 12',
            Stepper.named("stewart-trinkle", facets=12),
        ),
        ('[simulation.stepper]\ngap = "linearised"', Stepper(gap="linearised")),
    ],
)
def test_scene_files_and_saved_runs_keep_it(text: str, wanted: Stepper, tmp_path: Path) -> None:
    source = tmp_path / "scene.toml"
    source.write_text(FILE + text)
    scene, options = read_scene(source)
    run = simulate(scene, **options, progress=False)
    assert run.options.switches == wanted
    run.save(tmp_path / "run.h5")
    assert Trajectory.load(tmp_path / "run.h5").options == run.options
    assert str(wanted) in run.summary()


def test_command_line_takes_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.toml").write_text(FILE)
    assert main(["run", "scene.toml", "--stepper", "stewart-trinkle"]) == 0
    assert Trajectory.load(tmp_path / "scene.h5").options.stepper == "stewart-trinkle"
    (tmp_path / "bad.toml").write_text(FILE + "[simulation.stepper]\nfacets = 2")
    assert main(["run", "bad.toml"]) == 2


def bouncing() -> Scene:
    s = Scene(dim=2)
    s.add("ground", shapes.halfplane(normal=(0, 1)), fixed=True)
    s.add("disc", shapes.disc(1.0), mass=1.0, position=(0, 2))
    return s


def test_restitution_is_refused() -> None:
    s = bouncing()
    s.friction("disc", "ground", restitution=0.5)
    with pytest.raises(SceneError, match=r"restitution = 0.5: a classical stepper takes 0 only"):
        simulate(s, duration=0.1, step=0.01, stepper="stewart-trinkle")


def test_unbounded_surfaces_are_refused_as_facets() -> None:
    s = bouncing()
    s.add("bowl", shapes.surface("-y + 0*x - 5 + x**2/10 - 1", dim=2), fixed=True)
    with pytest.raises(SceneError, match=r"bodies.bowl.shape: an unbounded surface has no facets"):
        simulate(s, duration=0.1, step=0.01, stepper="stewart-trinkle")


def test_rattle_on_facets_rolls_the_polygon() -> None:
    """integrator = rattle, surface = faceted: the same run as of a scene with the polygon in it."""
    scene, facets = bouncing(), bouncing()
    facets.bodies["disc"] = type(facets.bodies["disc"])(
        **{**facets.bodies["disc"].__dict__, "shape": shapes.disc(1.0).faceted(8)}
    )
    how = {"duration": 0.7, "step": 0.01, "progress": False}
    one = simulate(scene, stepper=Stepper(integrator="rattle", surface="faceted", facets=8), **how)
    two = simulate(facets, stepper="implicit-rattle", **how)
    np.testing.assert_allclose(one["disc"].position, two["disc"].position, atol=1e-9)
    assert one.max_penetration < 1e-9
