// A body near the origin, its farthest points and how far a point is outside of it.
#pragma once
#include "geometry.hpp"
#include "geometry_small_vectors.hpp"

namespace geometry {

// Why an answer is not certain.
enum Reason { CERTAIN, FOREIGN_SHAPE, UNBOUNDED, DEEP, NOT_PROVEN, TOO_MANY, NOT_FINITE };

// A shape at a pose, seen from an origin near it: so rounding is that of the bodies' sizes.
struct Body {
    const Shape *shape;
    Vec x;
    Turn R;

    Vec world(const Vec &own) const { return x + R * own; }
    Vec own(const Vec &world) const { return R.back(world - x); }
    Vec centre() const { return world(vec(shape->inside)); }
};

Body seen_from(const Placed &placed, const double origin[3]);

inline Vec vertex(const Shape &s, int i) { return vec(&s.vertices[3 * static_cast<size_t>(i)]); }
inline int vertex_count(const Shape &s) { return static_cast<int>(s.vertices.size() / 3); }
inline int face_count(const Shape &s) { return static_cast<int>(s.planes.size() / 4); }

// Semi-axes; a planar shape has a third one across the plane: symmetric, it leaves everything in the plane.
Vec semi_axes(const Shape &s);

// Farthest point along d, of any length; own frame.
Vec farthest(const Shape &s, const Vec &d);
inline Vec farthest(const Body &body, const Vec &d) { return body.world(farthest(*body.shape, body.R.back(d))); }

// phi(n) = min_b n.b - max_a n.a, by which a plane across n keeps the bodies apart.
inline double separation(const Body &a, const Body &b, const Vec &n) {
    return dot(n, farthest(b, -n) - farthest(a, n));
}

// Radius of a ball that rolls inside the shape all round, touching its surface everywhere; 0 where it has edges.
double rolling_radius(const Shape &s);

// About the distance of a point from the shape, m; <= 0 inside. Own frame.
double outside(const Shape &s, const Vec &y);

// The same scale as `outside`, as the shapes' constraints have it: half squares over the radius.
double violation(const Shape &s, const Vec &y);

} // namespace geometry
