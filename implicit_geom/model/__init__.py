"""A scene as arrays: bodies, convex pieces, pairs, energy, and records of what a step did."""
