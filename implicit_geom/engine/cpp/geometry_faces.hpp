// The face of either body that keeps two bodies apart most.
#pragma once
#include "geometry_flats.hpp"

namespace geometry {

struct FaceAxis {
    double apart = -INFINITY; // m
    Vec n = {0, 0, 0};        // unit normal from the first body to the second
    int owner = 0;            // 1 or 2; 0: there is no face
};

FaceAxis best_face(const Body &a, const Body &b);

} // namespace geometry
