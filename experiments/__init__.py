"""The papers' experiments, by name.

A module of REGISTRY has TITLE, PARAMS, QUICK (what the quick form changes) and

    run(params) -> {table: {column: array}}
    check(tables) -> [Check, ...]
    plot(tables) -> {figure: Figure}
"""

from implicit_geom.experiments.registry import Registry

REGISTRY = Registry(
    {
        "ah02-136": "implicit_geom.experiments.ah02_136",
        "ah02-21": "implicit_geom.experiments.ah02_21",
        "ah02-pyramid": "implicit_geom.experiments.ah02_pyramid",
        "ah02-table1": "implicit_geom.experiments.ah02_table1",
        "bouncing-ellipsoid": "implicit_geom.experiments.bouncing_ellipsoid",
        "c07-attribution": "implicit_geom.experiments.c07_attribution",
        "c07-disc": "implicit_geom.experiments.c07_disc",
        "c07-fig1a": "implicit_geom.experiments.c07_fig1a",
        "c07-fig1b": "implicit_geom.experiments.c07_fig1b",
        "c07-spin": "implicit_geom.experiments.c07_spin",
        "c07-two-spheres": "implicit_geom.experiments.c07_two_spheres",
        "corner-impact": "implicit_geom.experiments.corner_impact",
        "disc-on-edge": "implicit_geom.experiments.disc_on_edge",
        "dropped-rod": "implicit_geom.experiments.dropped_rod",
        "ellipse-rolling": "implicit_geom.experiments.ellipse_rolling",
        "ellipsoid-on-ellipsoid": "implicit_geom.experiments.ellipsoid_on_ellipsoid",
        "ellipsoid-rolling": "implicit_geom.experiments.ellipsoid_rolling",
        "euler-disc": "implicit_geom.experiments.euler_disc",
        "friction-pyramid": "implicit_geom.experiments.friction_pyramid",
        "landing": "implicit_geom.experiments.landing",
        "mj14-sphere": "implicit_geom.experiments.mj14_sphere",
        "mj14-sphere-45": "implicit_geom.experiments.mj14_sphere_45",
        "newtons-cradle": "implicit_geom.experiments.newtons_cradle",
        "nt12-peg": "implicit_geom.experiments.nt12_peg",
        "nt12-ramp": "implicit_geom.experiments.nt12_ramp",
        "rattleback": "implicit_geom.experiments.rattleback",
        "rocking-block": "implicit_geom.experiments.rocking_block",
        "shape-loss": "implicit_geom.experiments.shape_loss",
        "sliding-spinning-ball": "implicit_geom.experiments.sliding_spinning_ball",
        "solver-profile": "implicit_geom.experiments.solver_profile",
        "spinning-egg": "implicit_geom.experiments.spinning_egg",
        "t10-ablation": "implicit_geom.experiments.t10_ablation",
        "t10-ball-drop": "implicit_geom.experiments.t10_ball_drop",
        "t10-chattering": "implicit_geom.experiments.t10_chattering",
        "t10-table1": "implicit_geom.experiments.t10_table1",
        "work-precision": "implicit_geom.experiments.work_precision",
    }
)
