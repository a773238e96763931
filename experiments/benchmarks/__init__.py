"""Measurements by name; modules as in `experiments`, where `plot` and `check` may be left out."""

from experiments.registry import Registry

REGISTRY = Registry(
    {
        "guard": "experiments.benchmarks.guard",
        "robustness": "experiments.benchmarks.robustness",
        "scale": "experiments.benchmarks.scale",
    }
)
