// Proved closest points of two bounded bodies, whatever their kinds.
#pragma once
#include "geometry_closest.hpp"
#include "geometry_faces.hpp"

namespace geometry {

// hint: points of a face's patch whose lowest may be the closest point; null where there is none.
// face: the largest separation by a face, and the point on it where that is one of the closest points.
int nearest_points(const Body &a, const Body &b, double size, const Points *hint, const FaceAxis &face,
                   const Closest *on_face, Closest &out);

} // namespace geometry
