"""Measurements by name; modules as in `experiments`, where `plot` and `check` may be left out."""

from implicit_geom.experiments.registry import Registry

REGISTRY = Registry(
    {
        "agreement": "implicit_geom.experiments.benchmarks.agreement",
        "batch": "implicit_geom.experiments.benchmarks.batch",
        "events": "implicit_geom.experiments.benchmarks.events",
        "everyday": "implicit_geom.experiments.benchmarks.everyday",
        "fuzz": "implicit_geom.experiments.benchmarks.fuzz",
        "guard": "implicit_geom.experiments.benchmarks.guard",
        "precision": "implicit_geom.experiments.benchmarks.precision",
        "robustness": "implicit_geom.experiments.benchmarks.robustness",
        "scale": "implicit_geom.experiments.benchmarks.scale",
        "solvers": "implicit_geom.experiments.benchmarks.solvers",
        "start-up": "implicit_geom.experiments.benchmarks.start_up",
        "step": "implicit_geom.experiments.benchmarks.step",
        "threads": "implicit_geom.experiments.benchmarks.threads",
    }
)
