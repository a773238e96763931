"""Classical time steppers: contacts found at a pose, and linear complementarity problems.

contacts               what a step reads: points, normals, gaps and wrenches of all contacts as arrays
surfaces               the shapes that are used: as given, or inscribed polygons and polyhedra
contact_finder         the contacts at a pose; vertex_contacts, polyhedron_contacts: those of polytopes
overlaps               separation of polytopes, whatever contacts were found
linearised_momentum    velocities as a linear function of impulses, nu = u + B W p [C07, eq. 4]
friction_pyramid       the contact problem of Stewart and Trinkle, a linear complementarity problem
friction_ellipsoid     the contact problem with C07's friction ellipsoid
step, stepper          a step by successive linearisation, and what a simulation needs of it
anitescu_hart          the subproblems of AH02 on the same contacts, quadratic_program their solution,
                       anitescu_hart_step a step of them
nguyen_trinkle         a vertex against a whole convex polygon [NT12], on the rows of vertex_finder
contact_records        contacts as they are listed; `check` holds them to the stepper's laws
"""
