// Where two convex shapes touch, or would after a small motion: points, normal and gaps [C07, eqs. 9, 22].
//
// Everything is in metres and in world axes unless a name says otherwise. Planar shapes lie in z = 0 and turn
// about z.
#pragma once
#include <vector>

namespace geometry {

enum Kind {
    HALFSPACE,      // par: normal (3), offset: {x : n.x <= offset}
    SPHERE,         // radius; in the plane a disc
    ELLIPSOID,      // a, b, c; in the plane an ellipse a, b
    SUPERELLIPSOID, // a, b, c, p: |x/a|^p + |y/b|^p + |z/c|^p <= 1; in the plane a, b, -, p
    CYLINDER,       // radius, length; axis z, centred
    CAPSULE,        // radius, length of the cylindrical part; axis z, centred
    CONE,           // radius, height; base at z = 0, apex up
    POLYTOPE,       // vertices, planes, rings; in the plane a polygon, counterclockwise
    FOREIGN         // known to Python alone
};

constexpr int RIM = 8;   // points that stand for a circle
constexpr int MOST = 32; // points of a patch

struct Shape {
    int dim, kind;
    double par[4];
    double size;      // half its largest extent, m
    double inside[3]; // a point well inside, own frame
    std::vector<double> vertices; // POLYTOPE: (V, 3), own frame
    std::vector<double> planes;   // (F, 4): outward unit normal, offset
    std::vector<int> ring, start; // vertices of face f, in order: ring[start[f]] ... ring[start[f + 1] - 1]
};

// A shape at a pose: world = x + R own, R row by row.
struct Placed {
    const Shape *shape;
    double x[3];
    double R[9];
};

// Contacts of two bodies along n, from the first to the second: b = a + gap own, where own is n but for edges
// that cross and closest points that are none of a face's.
//
// tag: names the feature by which a contact touches; where poses change a little the same contact keeps its
// tag. fixed: 1 or 2 where the contact stays on a material point of the first or second body (a vertex, a
// mark on a rim), 0 where it moves over both (smooth bodies, ends of a rolling line, crossing edges).
struct Patch {
    int count;
    double n[3];
    double a[MOST][3], b[MOST][3], own[MOST][3], gap[MOST];
    int tag[MOST], fixed[MOST];
};

// The patch of two shapes; a half-space comes first. Returns 0, or a reason why the answer is not certain:
// then nothing in `out` counts, and the caller asks another way.
int patch(const Placed &a, const Placed &b, Patch &out);

// Farthest point along d, world axes.
void support(const Placed &a, const double d[3], double out[3]);

} // namespace geometry
