"""Shapes known through their constraints alone: rays, boundary samples, mass, facets, meshes."""
