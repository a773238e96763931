"""The signed gap of two bodies: a hull of support points, and the digits by the closest-point equations."""
