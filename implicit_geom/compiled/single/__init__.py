"""One quadric on a plane: a step in machine code that solves for angular velocity and impulses alone."""
