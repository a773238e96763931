"""Siconos: an ellipsoid on a plane by the Moreau-Jean scheme, in a C++ program that runs beside this one.

Its contact is rigid, with Coulomb's cone and restitution (here zero) as laws on the end-of-step velocity of
the contacts whose gap is foreseen to close:

    M (v+ - v) = h F(theta) + W p,    q+ = q (+) h (theta v+ + (1 - theta) v),    0 <= p_n _|_ v_n+ >= 0

Siconos finds contacts of ellipsoids only through hulls, so that the gap is ours, in closed form, as a
subclass of its `NewtonEuler3DR` in `siconos_peer.cpp`. That program is compiled when it is first asked for
(some 10 s) and kept with the other compiled code; it needs Debian's package `siconos`, whose headers and
libraries it uses, and a C++ compiler. It times its own loop of `computeOneStep` and `nextStep`.

Found by measurement on the rolling ellipsoid with Siconos 4.4:

- The largest energy error is 36 %, 4.0 % and 0.4 % for h = 0.01, 0.001 and 0.0001 s, whatever theta. The
  position error at the end is 10 mm at h = 1 ms with theta = 0.5 (its own), in proportion to h, 21 mm
  with theta = 1, and falls to 1.8 mm at theta = 0.
- With several BLAS threads a step takes 15 to 30 times as long: it gets one.
- Newton's method to 1e-10 takes twice the time of one iteration, and changes errors by a few hundredths.
- The solvers NSGS (its own), NSN_AC, one-contact NSN and quartic are within a tenth in time, and give the
  same motion; DSFP does not converge. Projections on the constraints were not tried.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from implicit_geom import rotation
from implicit_geom.experiments.peers import PeerRun, RollingBody, Stepping, count_steps
from implicit_geom.machine import disk, expiry

HEADERS = Path("/usr/include/siconos")
SOURCE = Path(__file__).with_suffix(".cpp")
LIBRARIES = ("-lsiconos_kernel", "-lsiconos_numerics")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
SOLVERS = {"its own": 0, "NSGS": 500, "NSN_AC": 504, "one-contact NSN": 550, "quartic": 562}  # Friction_cst.h
STATE = 13  # q and twist


@dataclass(frozen=True)
class Setting:
    """theta of the scheme, Newton's iterations at most (1: linearised), and tolerance and solver of both.

    The defaults are those of Siconos; its own tolerances (1e-6 and 1e-4) are None.
    """

    theta: float = 0.5
    iterations: int = 50
    tolerance: float | None = None
    solver: str = "its own"


def present() -> bool:
    """Whether headers and a compiler are there."""
    return compiler() is not None and (HEADERS / "kernel" / "SiconosKernel.hpp").exists()


def compiler() -> str | None:
    return shutil.which("c++") or shutil.which("g++")


def release() -> str:
    """The version of Debian's package."""
    asked = ["dpkg-query", "--show", "--showformat=${Version}", "libsiconos-kernel-dev"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def settings() -> dict[str, Setting]:
    """By name; see the top of the file for what they do."""
    return {
        "default": Setting(),
        "solved": Setting(tolerance=1e-10),
        "linearised": Setting(iterations=1),
    }


def variants() -> dict[str, Setting]:
    """Settings among which the quickest for a given error is to be sought."""
    chosen = [(theta, count) for theta in (0.5, 0.25, 0.0) for count in (1, 50)]
    named = {
        f"theta = {theta:g}, {'linearised' if count == 1 else 'solved'}": Setting(theta, count, 1e-10)
        for theta, count in chosen
    }
    return {"as shipped": Setting(), **named, "linearised, quartic": Setting(0.0, 1, 1e-10, "quartic")}


def simulate(
    body: RollingBody, *, duration: float, step: float, setting: Setting, record: bool = True
) -> PeerRun:
    """Run the body for `duration` seconds; where recorded, every step is timed by itself."""
    count = count_steps(duration, step)
    pieces = np.ones(count) if record else np.array([count])
    seconds, y = _child().run(_problem(body, step, setting), pieces)
    q = y[:, 3:7]
    spin = np.einsum("tij,tj->ti", rotation.matrix(q), y[:, 10:13])
    time = step * np.concatenate([[0], np.cumsum(pieces)])
    return PeerRun(time, y[:, :3], q, y[:, 7:10], spin, wall_time=float(np.sum(seconds)), steps=count)


def stepping(body: RollingBody, step: float, setting: Setting) -> Stepping:
    """Times pieces of a motion."""
    problem = _problem(body, step, setting)
    return lambda pieces: _child().run(problem, pieces)[0]


def _problem(body: RollingBody, step: float, setting: Setting) -> np.ndarray:
    """The numbers of `Problem` in the C++ program, in its order."""
    spin = rotation.matrix(body.orientation).T @ body.angular_velocity
    s = setting
    return np.concatenate(
        [
            *([body.mass], body.inertia.ravel(), body.com, body.axes, [body.mu, body.gravity]),
            *(body.position, body.orientation, body.velocity, spin),
            [step, s.theta, s.iterations, s.tolerance or 0.0, SOLVERS[s.solver]],
        ]
    )


@cache
def _child() -> Child:
    return Child(program())


def program() -> Path:
    """The compiled program, made where it is not there yet."""
    chosen = compiler()
    if chosen is None:
        raise RuntimeError("Siconos as a peer needs a C++ compiler")
    options = ["-O2", "-std=c++14", *(f"-I{HEADERS / name}" for name in ("kernel", "numerics", ""))]
    made_from = "\n".join([SOURCE.read_text(), release(), chosen, *options])
    # (a folder of this process, where there is none that is this user's alone)
    kept = disk.private_folder(make=True) or Path(tempfile.mkdtemp(prefix="siconos-"))
    path = kept / f"{hashlib.sha256(made_from.encode()).hexdigest()}.siconos"
    expiry.mark_used(path)
    if not path.exists() or not disk.owned_by_user(path.lstat()):
        with tempfile.TemporaryDirectory(dir=path.parent) as new:
            made = Path(new) / path.name
            subprocess.run([chosen, *options, str(SOURCE), "-o", str(made), *LIBRARIES], check=True)
            made.chmod(0o700)
            os.replace(made, path)
    return path


class Child:
    """A process that answers lines of numbers by lines of numbers."""

    def __init__(self, path: Path) -> None:
        self.words = tempfile.TemporaryFile("w+")  # noqa: SIM115 (what it says beside its answers)
        self.process = subprocess.Popen(
            [str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.words,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )
        atexit.register(self.end)

    def run(self, problem: np.ndarray, pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of the pieces, and the states (len(pieces) + 1, 13) at their ends and the start."""
        line = " ".join(repr(number) for number in np.concatenate([problem, pieces]).astype(float).tolist())
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != len(pieces) + STATE * (len(pieces) + 1):
            self.words.seek(0)
            raise RuntimeError(f"Siconos: {' '.join(answer[:50])}\n{self.words.read()[-2000:]}")
        numbers = np.array(answer, dtype=float)
        return numbers[: len(pieces)], numbers[len(pieces) :].reshape(-1, STATE)

    def end(self) -> None:
        """No more lines: the program ends by itself."""
        self.process.communicate()
        self.words.close()
