"""Classical time steppers: contacts found at a pose, and linear complementarity problems.

contacts            what a step reads: points, normals, gaps of all contacts as arrays
surfaces            the shapes that are used: as given, or inscribed polygons and polyhedra
finder              the contacts at a pose; `vertices` and `hulls` those of polytopes
momentum            velocities as a linear function of impulses
pyramid, ellipsoid  the problem of all contacts with either friction law
step, stepper       a step by successive linearisation, and what a simulation needs of it
relaxation          the convex relaxations of AH02 on the same contacts
nguyen_trinkle      a vertex against a whole convex polygon, on the rows of `vertex_shapes`
records             contacts as they are listed; `certificate` holds them to the stepper's laws
"""
