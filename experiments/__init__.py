"""The papers' experiments, by name.

A module of REGISTRY has TITLE, PARAMS, QUICK (what the quick form changes) and

    run(params) -> {table: {column: array}}
    check(tables) -> [Check, ...]
    plot(tables) -> {figure: Figure}
"""

from experiments.registry import Registry

REGISTRY = Registry(
    {
        "ah02-136": "experiments.ah02_136",
        "ah02-21": "experiments.ah02_21",
        "ah02-pyramid": "experiments.ah02_pyramid",
        "ah02-table1": "experiments.ah02_table1",
        "c07-attribution": "experiments.c07_attribution",
        "c07-disc": "experiments.c07_disc",
        "c07-fig1a": "experiments.c07_fig1a",
        "c07-fig1b": "experiments.c07_fig1b",
        "c07-spin": "experiments.c07_spin",
        "c07-two-spheres": "experiments.c07_two_spheres",
        "disc-on-edge": "experiments.disc_on_edge",
        "ellipse-rolling": "experiments.ellipse_rolling",
        "ellipsoid-on-ellipsoid": "experiments.ellipsoid_on_ellipsoid",
        "ellipsoid-rolling": "experiments.ellipsoid_rolling",
        "euler-disc": "experiments.euler_disc",
        "friction-pyramid": "experiments.friction_pyramid",
        "landing": "experiments.landing",
        "nt12-peg": "experiments.nt12_peg",
        "nt12-ramp": "experiments.nt12_ramp",
        "rattleback": "experiments.rattleback",
        "shape-loss": "experiments.shape_loss",
        "sliding-spinning-ball": "experiments.sliding_spinning_ball",
        "spinning-egg": "experiments.spinning_egg",
        "work-precision": "experiments.work_precision",
    }
)
