"""Independent checks of solved steps: momentum, geometry, complementarity, friction."""
