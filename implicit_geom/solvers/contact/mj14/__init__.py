"""The four solvers of Mylapilli and Jain 2014 [MJ14], and PATH: contact as one system of equations.

operational_space   impulses to velocities, bilateral rows as unknowns of their own
directions          corners of the friction pyramids: fixed, turned, or along the slip
mixed_lcp           a mixed linear complementarity problem as equations by Fischer and Burmeister
pyramid_lcp         contact with friction pyramids as such a problem
implicit_ncp        contact with the exact cone in the unknowns z = v - F
minimum             what a minimisation of |phi|^2 / 2 comes to
regular             RLM: Levenberg-Marquardt, damped by the ratio of decreases
projected           PLM: Levenberg-Marquardt with a non-monotone search and a watchdog
entries             the solvers by name
path                PATH, by GAMSPy
"""
