#include "block_lu.hpp"
#include "linear_algebra.hpp"
#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

namespace {

// D^-1 B for a block B, row by row; D as `la::factorise` leaves it
template <int M> void solve_rows(const double *LU, const int *pivot, double *B) {
    for (int k = 0; k < M; ++k)
        if (pivot[k] != k) std::swap_ranges(B + k * M, B + (k + 1) * M, B + pivot[k] * M);
    for (int k = 0; k < M; ++k)
        for (int i = k + 1; i < M; ++i)
            for (int c = 0; c < M; ++c) B[i * M + c] -= LU[i * M + k] * B[k * M + c];
    for (int k = M - 1; k >= 0; --k) {
        for (int j = k + 1; j < M; ++j)
            for (int c = 0; c < M; ++c) B[k * M + c] -= LU[k * M + j] * B[j * M + c];
        for (int c = 0; c < M; ++c) B[k * M + c] /= LU[k * M + k];
    }
}

} // namespace

BlockLU::BlockLU(int blocks, int size, const std::vector<std::pair<int, int>> &edges)
    : n(blocks), m(size), entries(size * size), place(blocks), order(blocks), after(blocks), first(blocks) {
    std::vector<std::vector<int>> near(n);
    for (auto [i, j] : edges)
        if (i != j) near[i].push_back(j), near[j].push_back(i);
    for (auto &list : near) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    std::set<std::pair<std::size_t, int>> left; // by degree
    for (int i = 0; i < n; ++i) left.insert({near[i].size(), i});
    for (int k = 0; k < n; ++k) {
        const int best = left.begin()->second;
        left.erase(left.begin());
        order[k] = best, place[best] = k;
        const std::vector<int> list = near[best];
        for (int i : list) {
            auto &own = near[i];
            left.erase({own.size(), i});
            own.erase(std::lower_bound(own.begin(), own.end(), best));
            std::vector<int> merged;
            std::set_union(own.begin(), own.end(), list.begin(), list.end(), std::back_inserter(merged));
            merged.erase(std::lower_bound(merged.begin(), merged.end(), i));
            own.swap(merged);
            left.insert({own.size(), i});
        }
        after[k] = list;
    }
    int count = n;
    for (int k = 0; k < n; ++k) {
        for (int &i : after[k]) i = place[i];
        std::sort(after[k].begin(), after[k].end());
        first[k] = count;
        count += 2 * int(after[k].size());
    }
    values.assign(std::size_t(count) * entries, 0.0);
    pivots.resize(std::size_t(n) * m);
    for (int k = 0; k < n; ++k)
        for (int i : after[k])
            for (int j : after[k]) targets.push_back(at(i, j));
}

int BlockLU::at(int i, int j) const {
    if (i == j) return i;
    const int k = std::min(i, j);
    const auto &list = after[k];
    const int where = int(std::lower_bound(list.begin(), list.end(), std::max(i, j)) - list.begin());
    return first[k] + 2 * where + (i < j ? 1 : 0);
}

void BlockLU::clear() { std::fill(values.begin(), values.end(), 0.0); }

double *BlockLU::block(int i, int j) { return values.data() + std::size_t(at(place[i], place[j])) * entries; }

bool BlockLU::factorise() { return m == 6 ? factorise_blocks<6>() : factorise_blocks<3>(); }

// (the size of a block is known to the compiler: three times as quick)
template <int M> bool BlockLU::factorise_blocks() {
    const int *target = targets.data();
    for (int k = 0; k < n; ++k) {
        double *D = values.data() + std::size_t(k) * M * M;
        int *pivot = pivots.data() + std::size_t(k) * M;
        if (!la::factorise(D, pivot, M)) return false;
        const int later = int(after[k].size());
        double *own = values.data() + std::size_t(first[k]) * M * M;
        for (int a = 0; a < later; ++a) solve_rows<M>(D, pivot, own + (2 * a + 1) * M * M); // U <- D^-1 U
        for (int a = 0; a < later; ++a) {
            const double *L = own + 2 * a * M * M;
            for (int b = 0; b < later; ++b) {
                const double *U = own + (2 * b + 1) * M * M;
                double *T = values.data() + std::size_t(*target++) * M * M;
                for (int r = 0; r < M; ++r) {
                    double row[M] = {0};
                    for (int q = 0; q < M; ++q)
                        for (int c = 0; c < M; ++c) row[c] += L[r * M + q] * U[q * M + c];
                    for (int c = 0; c < M; ++c) T[r * M + c] -= row[c];
                }
            }
        }
    }
    return true;
}

void BlockLU::solve(double *x) const {
    std::vector<double> y(std::size_t(n) * m);
    for (int k = 0; k < n; ++k) std::memcpy(&y[std::size_t(k) * m], x + std::size_t(order[k]) * m, sizeof(double) * m);
    // forward: y_k is not yet multiplied by D^-1 where later ones see it through D^-1 U
    for (int k = 0; k < n; ++k) {
        double *own = &y[std::size_t(k) * m];
        la::substitute(values.data() + std::size_t(k) * entries, pivots.data() + std::size_t(k) * m, m, own);
        for (std::size_t a = 0; a < after[k].size(); ++a) {
            const double *L = values.data() + (std::size_t(first[k]) + 2 * a) * entries;
            double *other = &y[std::size_t(after[k][a]) * m];
            for (int r = 0; r < m; ++r)
                for (int c = 0; c < m; ++c) other[r] -= L[r * m + c] * own[c];
        }
    }
    for (int k = n - 1; k >= 0; --k) {
        double *own = &y[std::size_t(k) * m];
        for (std::size_t a = 0; a < after[k].size(); ++a) {
            const double *U = values.data() + (std::size_t(first[k]) + 2 * a + 1) * entries;
            const double *other = &y[std::size_t(after[k][a]) * m];
            for (int r = 0; r < m; ++r)
                for (int c = 0; c < m; ++c) own[r] -= U[r * m + c] * other[c];
        }
    }
    for (int k = 0; k < n; ++k) std::memcpy(x + std::size_t(order[k]) * m, &y[std::size_t(k) * m], sizeof(double) * m);
}
