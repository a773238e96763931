"""Classical time steppers: contacts found at a pose, and linear complementarity problems.

contacts     what a step reads: points, normals, gaps of all contacts as arrays
surfaces     the shapes that are used: as given, or inscribed polygons and polyhedra
finder       the contacts at a pose
relaxation   the quadratic program of `anitescu_hart`, which solves a step by LCP0, LCP1 or LCP2
"""
