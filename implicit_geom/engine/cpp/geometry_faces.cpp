// Faces of polytopes, cylinders and cones as planes between two bodies.
#include "geometry_faces.hpp"

namespace geometry {

static void of_body(const Body &own, const Body &other, int owner, FaceAxis &best) {
    const Shape &s = *own.shape;
    const double sign = owner == 1 ? 1 : -1;
    const Vec axis = own.R.axis();
    const int caps = s.kind == CYLINDER ? 2 : s.kind == CONE ? 1 : 0;
    const int faces = s.kind == POLYTOPE ? face_count(s) : caps;
    for (int f = 0; f < faces; f++) {
        Vec m, on; // outward normal and a point of the face
        if (caps) {
            m = f == 0 ? -axis : axis;
            on = own.x + (s.kind == CYLINDER ? s.par[1] / 2 : 0) * m;
        } else {
            m = own.R * vec(&s.planes[4 * static_cast<size_t>(f)]);
            on = own.world(vertex(s, s.ring[s.start[f]]));
        }
        // (the other body's inside point is nearer than its support point: no need to look)
        if (dot(m, other.centre() - on) <= best.apart) continue;
        const double apart = dot(m, farthest(other, -m) - on);
        if (apart > best.apart) best.apart = apart, best.n = sign * m, best.owner = owner;
    }
}

FaceAxis best_face(const Body &a, const Body &b) {
    FaceAxis best;
    of_body(a, b, 1, best);
    of_body(b, a, 2, best);
    return best;
}

} // namespace geometry
