// Closest points of two bounded bodies: coarse bounds, the features that touch there, Newton's method.
#pragma once
#include "geometry_flats.hpp"

namespace geometry {

// Gilbert, Johnson and Keerthi's simplex in B - A (shifted), towards the origin; it can be run further.
struct Simplex {
    const Body *a, *b;
    Vec shift;    // by which b is moved
    double radii; // of both: spheres and capsules are taken by their cores
    double radius_a, radius_b;
    double scale; // m, what tolerances refer to
    int count;
    Vec w[4], on_a[4], on_b[4];
    double weight[4];
    Vec v;             // its point nearest the origin
    double lower;      // largest separation of the cores met
    Vec best;          // and the direction of that
    bool overlapping, finished;

    void begin(const Body &first, const Body &second, const Vec &towards, const Vec &moved, double size);
    // until upper and lower bound differ by no more than eps scale
    void run(double eps);
    void points(const Vec &n, Vec &p, Vec &q) const; // on the bodies' surfaces
};

// Swept round the core of a shape.
inline double core_radius(const Shape &s) { return s.kind == SPHERE || s.kind == CAPSULE ? s.par[0] : 0.0; }

// What of a shape is round a point of its surface: own frame. Bodies are a core and a radius round it.
enum LocalKind { POINT, LINE, CIRCLE, CONE_SIDE, SMOOTH };
struct Local {
    int kind;
    double radius;     // swept round the core
    Vec point, along;  // POINT; LINE: start, and unit vector
    double reach;      // LINE: length; CIRCLE: radius
    double height;     // CIRCLE: z
    const Shape *shape;
    int from, to;      // vertices of a polytope's corner (from) or edge; -1
};

// Features near a point y of a shape where it faces m, the likeliest first; own frame.
constexpr int FEATURES = 4;
int features_at(const Shape &s, const Vec &y, const Vec &m, Local out[FEATURES]);
Local corner_of(const Shape &s, int i);
Local edge_of(const Shape &s, int i, int j);

// Closest points of two features from a start; false where they are not proved. Overlap: a local maximum.
bool closest_of(const Body &a, const Local &la, const Body &b, const Local &lb, const Vec &n, const Vec &p,
                const Vec &q, double size, Closest &out);

// The same of all features near a start.
bool closest_near(const Body &a, const Body &b, const Vec &n, const Vec &p, const Vec &q, double size,
                  Closest &out);

// The crossing edges of two polytopes that a plane along both keeps apart most; false where none.
bool closest_edges(const Body &a, const Body &b, double size, double above, Closest &out);

// m by which a gap may differ from the separation along its normal
double proof_slack(const Body &a, const Body &b, double size);

} // namespace geometry
