"""The engine in native code; all else about the package stands in pyproject.toml."""

from glob import glob

from setuptools import Extension, setup

folder = "implicit_geom/engine/cpp"
setup(
    ext_modules=[
        Extension(
            "implicit_geom.engine._native",
            sources=sorted(glob(f"{folder}/*.cpp")),
            depends=sorted(glob(f"{folder}/*.hpp")),
            language="c++",
            # (no fused operations: the same bits on every machine)
            extra_compile_args=["-std=c++17", "-O3", "-ffp-contract=off", "-fvisibility=hidden"],
        )
    ]
)
