"""Solvers that know no physics: semi-smooth Newton, block elimination (Schur complement), cones, LCPs."""
