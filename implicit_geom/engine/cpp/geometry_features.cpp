// The flat part of a body that faces a direction: a face, a line, a rim, a point.
#include <algorithm>

#include "geometry_flats.hpp"

namespace geometry {

static const double LEVEL = 1e-12;            // rad by which a round face may tilt that is none
static const double STEEP = 0.70710678118654752; // cosine to a bar's axis from which its end faces, not its side
static const double FARTHEST = 1e-9;          // height below the farthest vertex, over the size, that is none

// cosines and sines of the marks: (2 pi k / RIM)
static const double HALF = 0.70710678118654752;
static const double COSINE[RIM] = {1, HALF, 0, -HALF, -1, -HALF, 0, HALF};
static const double SINE[RIM] = {0, HALF, 1, HALF, 0, -HALF, -1, -HALF};

static void add(Flat &out, const Body &body, const Vec &own, int id) {
    out.p[out.count] = body.world(own);
    out.id[out.count++] = id;
}

static bool of_polytope(const Body &body, const Vec &d, Flat &out) {
    const Shape &s = *body.shape;
    const int faces = face_count(s);
    const double *v = s.vertices.data();
    double most = -INFINITY;
    for (int i = 0; i < vertex_count(s); i++) {
        most = std::max(most, v[3 * i] * d.x + v[3 * i + 1] * d.y + v[3 * i + 2] * d.z);
    }
    const double level = most - FARTHEST * s.size * length(d);
    int best = -1, most_far = -1;
    double most_facing = -INFINITY;
    for (int f = 0; f < faces; f++) {
        int far = 0;
        for (int k = s.start[f]; k < s.start[f + 1]; k++) {
            const double *p = v + 3 * s.ring[k];
            far += p[0] * d.x + p[1] * d.y + p[2] * d.z >= level;
        }
        const double *m = &s.planes[4 * static_cast<size_t>(f)];
        const double facing = m[0] * d.x + m[1] * d.y + m[2] * d.z;
        if (far > most_far || (far == most_far && facing > most_facing)) {
            best = f, most_far = far, most_facing = facing;
        }
    }
    if (best < 0 || s.start[best + 1] - s.start[best] > CORNERS) return false;
    out.kind = CORNER_POINTS;
    out.centre = {0, 0, 0};
    for (int k = s.start[best]; k < s.start[best + 1]; k++) {
        add(out, body, vertex(s, s.ring[k]), s.ring[k]);
        out.centre = out.centre + out.p[out.count - 1];
    }
    out.centre = (1.0 / out.count) * out.centre;
    out.normal = body.R * vec(&s.planes[4 * static_cast<size_t>(best)]);
    if (dot(out.normal, out.n) < 0) out.normal = -out.normal;
    return true;
}

// Marks on a circle, and where it is farthest along d, in place of a mark that is there.
static void rim(const Body &body, double radius, double z, double up, const Vec &d, Flat &out) {
    out.kind = RIM_POINTS;
    const double far = std::sqrt(d.x * d.x + d.y * d.y);
    const bool tilted = far > LEVEL * std::fabs(d.z);
    const double c = tilted ? d.x / far : 0, s = tilted ? d.y / far : 0;
    for (int k = 0; k < RIM; k++)
        if (!tilted || std::hypot(c - COSINE[k], s - SINE[k]) > SAME)
            add(out, body, {radius * COSINE[k], radius * SINE[k], z}, k);
    if (tilted) add(out, body, {radius * c, radius * s, z}, RIM);
    out.centre = body.world({0, 0, z});
    out.radius = radius;
    out.normal = up * body.R.axis();
}

static void of_cylinder(const Body &body, const Vec &d, Flat &out) {
    const double r = body.shape->par[0], half = body.shape->par[1] / 2, far = std::sqrt(d.x * d.x + d.y * d.y);
    if (std::fabs(d.z) > STEEP * length(d) || !(far > 0)) {
        const double up = d.z < 0 ? -1.0 : 1.0;
        return rim(body, r, up * half, up, d, out);
    }
    const Vec side = {r * d.x / far, r * d.y / far, 0};
    if (half == 0) {
        add(out, body, side, 0);
        return;
    }
    out.kind = LINE_ENDS;
    add(out, body, {side.x, side.y, -half}, 0);
    add(out, body, {side.x, side.y, half}, 1);
}

static void of_capsule(const Body &body, const Vec &d, Flat &out) {
    const Vec u = unit(d, {1, 0, 0});
    const double r = body.shape->par[0], half = body.shape->par[1] / 2;
    if (std::fabs(u.z) > STEEP || half == 0) {
        add(out, body, farthest(*body.shape, d), 0);
        return;
    }
    out.kind = LINE_ENDS;
    add(out, body, {r * u.x, r * u.y, r * u.z - half}, 0);
    add(out, body, {r * u.x, r * u.y, r * u.z + half}, 1);
}

static void of_cone(const Body &body, const Vec &d, Flat &out) {
    const Vec u = unit(d, {0, 0, 1});
    const double r = body.shape->par[0], height = body.shape->par[1], far = std::sqrt(u.x * u.x + u.y * u.y);
    if (-u.z > (height * far + r * u.z) / std::hypot(height, r)) return rim(body, r, 0, -1, d, out);
    if (!(far > 0)) {
        out.kind = CORNER_POINTS; // the apex is a vertex
        add(out, body, {0, 0, height}, 0);
        return;
    }
    out.kind = LINE_ENDS;
    add(out, body, {r * u.x / far, r * u.y / far, 0}, 0);
    add(out, body, {0, 0, height}, 1);
}

bool flat_part(const Body &body, const Vec &d, int owner, Flat &out) {
    const Vec own = body.R.back(d);
    out.count = 0, out.kind = ONE_POINT, out.owner = owner, out.dim = body.shape->dim;
    out.n = out.normal = d;
    out.radius = 0;
    out.vertices = 1;
    switch (body.shape->kind) {
    case POLYTOPE: out.vertices = vertex_count(*body.shape); return of_polytope(body, own, out);
    case CYLINDER: of_cylinder(body, own, out); break;
    case CAPSULE: of_capsule(body, own, out); break;
    case CONE: of_cone(body, own, out); break;
    default: add(out, body, farthest(*body.shape, own), 0);
    }
    return true;
}

void name_of(const Flat &flat, int k, int &tag, int &fixed) {
    const int id = flat.id[k];
    tag = fixed = 0;
    if (flat.kind == CORNER_POINTS) {
        tag = (flat.owner == 2 ? 1000 : 2000) + id, fixed = flat.owner;
    } else if (flat.kind == RIM_POINTS && id == RIM) {
        tag = flat.owner == 2 ? 4200 : 4201;
    } else if (flat.kind == RIM_POINTS) {
        tag = (flat.owner == 2 ? 4000 : 4100) + id, fixed = flat.owner;
    } else if (flat.kind == LINE_ENDS) {
        tag = 5000 + id;
    }
}

} // namespace geometry
