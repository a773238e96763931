"""Measurements by name; modules as in `experiments`, where `plot` and `check` may be left out."""

from experiments.registry import Registry

REGISTRY = Registry(
    {
        "agreement": "experiments.benchmarks.agreement",
        "batch": "experiments.benchmarks.batch",
        "fuzz": "experiments.benchmarks.fuzz",
        "guard": "experiments.benchmarks.guard",
        "precision": "experiments.benchmarks.precision",
        "robustness": "experiments.benchmarks.robustness",
        "scale": "experiments.benchmarks.scale",
        "solvers": "experiments.benchmarks.solvers",
        "start-up": "experiments.benchmarks.start_up",
        "step": "experiments.benchmarks.step",
        "threads": "experiments.benchmarks.threads",
    }
)
