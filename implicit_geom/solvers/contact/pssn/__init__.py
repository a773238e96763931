"""`pssn`, the default: proximal semi-smooth Newton with Gauss-Seidel.

newton   the inner problem
solver   the outer loop and its fallbacks
"""
