"""Scene files: the same scene as by Python calls, and clear errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from implicit_geom import Scene, SceneError, ShapeError, read_scene, shapes, simulate
from implicit_geom.rotation import unit
from implicit_geom.scene.scene_file import to_dict

EXAMPLE = """
dim = 3
gravity = [0, 0, -9.81]

[bodies.ground]
shape = { kind = "halfspace", normal = [0, 0, 1] }
fixed = true

[bodies.egg]
shape = { kind = "ellipsoid", a = 0.5, b = 0.4, c = 0.3 }
mass = 1.0
position = [0, 0, 0.31]
velocity = [1, 0, 0]

[friction]
mu = 0.4
e_r = 0.1

[[friction.pairs]]
bodies = ["egg", "ground"]
mu = 0.2

[applied.egg]
force = [0.5, 0, 0]

[simulation]
duration = 0.2
step = 0.01
"""


def test_file_equals_python_calls(tmp_path: Path) -> None:
    """The file and the same calls in Python give the same scene and the same run, bit for bit."""
    (tmp_path / "egg.toml").write_text(EXAMPLE)
    scene, options = read_scene(tmp_path / "egg.toml")
    twin = Scene(gravity=(0, 0, -9.81))
    twin.add("ground", shapes.halfspace(normal=(0, 0, 1)), fixed=True)
    twin.add("egg", shapes.ellipsoid(0.5, 0.4, 0.3), mass=1.0, position=(0, 0, 0.31), velocity=(1, 0, 0))
    twin.friction(mu=0.4, e_r=0.1)
    twin.friction("egg", "ground", mu=0.2)
    twin.applied("egg", force=(0.5, 0, 0))
    assert to_dict(scene) == to_dict(twin)
    assert options == {"duration": 0.2, "step": 0.01}
    a, b = simulate(scene, **options), simulate(twin, duration=0.2, step=0.01)
    assert a.states.x.tobytes() == b.states.x.tobytes()


def test_dictionary_round_trip(eggs: Scene) -> None:
    """to_dict, read_scene, to_dict: the same dictionary."""
    plain = to_dict(eggs)
    assert to_dict(read_scene(plain)[0]) == plain


def test_planar_scene() -> None:
    """In the plane orientation, angular velocity and torque are numbers."""
    body = {
        "shape": {"kind": "disc", "r": 1.0},
        "mass": 1,
        "orientation": 0.5,
        "angular_velocity": 2,
        "inertia": 0.5,
    }
    scene, _ = read_scene({"dim": 2, "bodies": {"disc": body}, "applied": {"disc": {"torque": 0.1}}})
    assert scene.bodies["disc"].orientation == 0.5
    assert scene.load("disc", 0.0)[1] == 0.1
    assert to_dict(read_scene(to_dict(scene))[0]) == to_dict(scene)


def test_unit_vectors_are_kept_to_the_last_bit() -> None:
    """Orientations and friction directions, once normalised, are read back unchanged."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        scene = Scene()
        scene.add("ball", shapes.sphere(1.0), mass=1.0, orientation=unit(rng.normal(size=4)))
        scene.friction(direction=rng.normal(size=3))
        assert to_dict(read_scene(to_dict(scene))[0]) == to_dict(scene)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("gravity =", "gravty =", "the scene: key 'gravty' is not known; did you mean 'gravity'?"),
        ("mass =", "mas =", "bodies.egg: key 'mas' is not known; did you mean 'mass'?"),
        ("e_r =", "e_rr =", "friction: key 'e_rr' is not known"),
        ('mu = 0.2', 'muu = 0.2', "friction.pairs[0]: key 'muu' is not known; did you mean 'mu'?"),
        ("force =", "forces =", "applied.egg: key 'forces' is not known; did you mean 'force'?"),
        ("step =", "stp =", "simulation: key 'stp' is not known; did you mean 'step'?"),
        ('"egg", "ground"]', '"egg", "grund"]', "no body named 'grund'; did you mean 'ground'?"),
        ("[applied.egg]", "[applied.eg]", "no body named 'eg'; did you mean 'egg'?"),
        ('"ellipsoid"', '"elipsoid"', "did you mean 'ellipsoid'?"),
        ("c = 0.3", "d = 0.3", "ellipsoid"),
        ("dim = 3", "dim = 4", "dim = 4"),
        ("dim = 3", 'dim = "3"', "dim = '3'"),
        ("fixed = true", 'fixed = "yes"', "bodies.ground.fixed = 'yes'"),
        ("mass = 1.0", "mass = true", "bodies.egg.mass = True"),
        ("position = [0, 0, 0.31]", "position = [0, 0]", "bodies.egg.position"),
        ("position = [0, 0, 0.31]", 'position = "up"', "bodies.egg.position"),
        ("mu = 0.4", 'mu = "much"', "friction.mu = 'much'"),
        ("mu = 0.4", 'mu = 0.4\nframe = "eg"', "friction.frame"),
        ("gravity = [0, 0, -9.81]", "gravity = [0, 0, -9.81", "not valid TOML"),
        ("[[friction.pairs]]", "[friction.pairs]", "friction.pairs"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what(tmp_path: Path, old: str, new: str, words: str) -> None:
    """A wrong key, name or value: one line with the file, the field and the nearest known name."""
    assert old in EXAMPLE
    path = tmp_path / "egg.toml"
    path.write_text(EXAMPLE.replace(old, new))
    with pytest.raises((SceneError, ShapeError)) as error:
        read_scene(path)
    message = str(error.value)
    assert message.startswith(str(path))
    assert words in message
    assert "\n" not in message


def test_syntax_error_has_its_line(tmp_path: Path) -> None:
    """A TOML syntax error names the line."""
    path = tmp_path / "egg.toml"
    path.write_text("dim = 3\ngravity = = 1\n")
    with pytest.raises(SceneError, match="line 2"):
        read_scene(path)


def test_files_that_are_no_scene(tmp_path: Path) -> None:
    """A missing file, a directory and bytes that are no text."""
    with pytest.raises(SceneError, match="cannot be read: No such file"):
        read_scene(tmp_path / "none.toml")
    with pytest.raises(SceneError, match="cannot be read"):
        read_scene(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SceneError, match="not a text file"):
        read_scene(tmp_path / "bytes.toml")
