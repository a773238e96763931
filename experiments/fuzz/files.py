"""What all fuzzers of files share: a case, changes of bytes, and a process in which a crash is a finding."""

from __future__ import annotations

import importlib
import os
import resource
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import implicit_geom
from implicit_geom.interface.errors import SceneError, SimulationError

HANG = 2.0  # s of processor time for a file
WAIT = 60.0  # s until a process that says nothing is given up


@dataclass(frozen=True)
class Case:
    """A file that is not as it was written.

    `hashed`: it still has the hash that was written, so that reading it as something else is a finding.
    `alone`: to be read in another process, because a library that can crash sees the bytes.
    """

    name: str
    data: bytes
    original: bytes
    hashed: bool
    alone: bool


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 8]))):
        out[rng.integers(len(out))] ^= 1 << int(rng.integers(8))
    return bytes(out)


def overwritten(data: bytes, rng: np.random.Generator) -> bytes:
    """A stretch of noise, zeros or ones."""
    start, size = int(rng.integers(len(data))), int(rng.integers(1, 64))
    stretch = (rng.bytes(size), bytes(size), b"\xff" * size)[rng.integers(3)]
    return data[:start] + stretch[: len(data) - start] + data[start + size :]


def truncated(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(len(data))]


def extended(data: bytes, rng: np.random.Generator) -> bytes:
    return data + rng.bytes(int(rng.integers(1, 1000)))


def spliced(data: bytes, rng: np.random.Generator) -> bytes:
    """A part of the file copied to another place, removed, or put in once more."""
    start, end = sorted(int(i) for i in rng.integers(len(data), size=2))
    place = int(rng.integers(len(data)))
    part = data[start:end]
    made = (
        data[:place] + part + data[place + len(part) :],
        data[:start] + data[end:],
        data[:place] + part + data[place:],
    )
    return made[rng.integers(3)]


BYTES = (flipped, flipped, overwritten, truncated, extended, spliced)


def outcome(
    read: Callable[[Path], bytes], case_data: bytes, original: bytes, hashed: bool, suffix: str
) -> str:
    """Read a file: "" where it is refused in one line or as it should be, otherwise what went wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"case{suffix}"
        path.write_bytes(case_data)
        started = _spent()
        found = None
        try:
            found = read(path)
            words = ""
        except (SceneError, SimulationError) as error:
            text = str(error)
            words = "" if text.isprintable() and len(text) < 1000 else f"no clear line: {text[:200]!r}"
        except BaseException as error:
            words = f"{type(error).__name__}: {error}"
        if _spent() - started > HANG:
            return f"hangs in {read.__name__}: {_spent() - started:.1f} s"
    if words:
        return words
    if found is None or not hashed or case_data == original:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"original{suffix}"
        path.write_bytes(original)
        return "" if read(path) == found else "accepted"


def _spent() -> float:
    """Processor time of this process and of those it started and that ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


class Alone:
    """A process that reads files for a fuzzer's module, started anew where it does not survive one."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.process: subprocess.Popen[bytes] | None = None

    def outcome(self, data: bytes) -> str:
        """What the module's `look(data)` says there; a crash or a hang is told as such."""
        if self.process is None:
            self._start()
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        with tempfile.NamedTemporaryFile(suffix=".case", delete=False) as file:
            file.write(data)
        try:
            process.stdin.write(file.name.encode() + b"\n")
            process.stdin.flush()
            ready = select.select([process.stdout], [], [], WAIT)[0]
            line = process.stdout.readline() if ready else b""
        except OSError:
            ready, line = [process.stdout], b""
        finally:
            os.unlink(file.name)
        if line.endswith(b"\n"):
            return line.decode().strip()
        self.close()
        return f"crashed: status {process.returncode}" if ready else f"hangs: more than {WAIT:g} s"

    def _start(self) -> None:
        root = str(Path(str(implicit_geom.__file__)).parents[1])
        path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "implicit_geom.experiments.fuzz.files", self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )

    def close(self) -> None:
        if self.process is not None:
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            self.process = None


def main(module: str) -> None:
    """Answer one line a file."""
    look = importlib.import_module(module).look
    for line in sys.stdin:
        words = look(Path(line.strip()).read_bytes())
        print(" ".join(words.split()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
