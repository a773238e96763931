// Siconos solves one global frictional contact problem, M v = f + H r, u = H^T v + w, by its Gauss-Seidel solver.
//
// In: contacts, velocities, entries of M and their triplets, entries of H and theirs, f, w, mu, tolerance.
// Out: its status, then v and r, in one line. (Debian's Siconos is built without FCLIB: it reads no HDF5.)

#include <cstdio>
#include <iostream>
#include <vector>

#include <Friction_cst.h>
#include <GlobalFrictionContactProblem.h>
#include <NonSmoothDrivers.h>
#include <NumericsMatrix.h>
#include <SolverOptions.h>

static NumericsMatrix* matrix(int rows, int columns)
{
  int entries, row, column;
  double value;
  std::cin >> entries;
  NumericsMatrix* A = NM_create(NM_SPARSE, rows, columns);
  NM_triplet_alloc(A, entries);
  for(int k = 0; k < entries; ++k)
  {
    std::cin >> row >> column >> value;
    NM_entry(A, row, column, value);
  }
  return A;
}

static double* vector(int size)
{
  double* x = new double[size];
  for(int i = 0; i < size; ++i) std::cin >> x[i];
  return x;
}

int main()
{
  int contacts, n;
  std::cin >> contacts >> n;
  GlobalFrictionContactProblem* problem = globalFrictionContactProblem_new();
  problem->dimension = 3;
  problem->numberOfContacts = contacts;
  problem->M = matrix(n, n);
  problem->H = matrix(n, 3 * contacts);
  problem->q = vector(n);
  problem->b = vector(3 * contacts);
  problem->mu = vector(contacts);
  SolverOptions* options = solver_options_create(SICONOS_GLOBAL_FRICTION_3D_NSGS_WR);
  std::cin >> options->dparam[SICONOS_DPARAM_TOL];
  options->iparam[SICONOS_IPARAM_MAX_ITER] = 100000;
  std::vector<double> r(3 * contacts), u(3 * contacts), v(n);
  std::fprintf(stderr, "solving\n");
  const int status = gfc3d_driver(problem, r.data(), u.data(), v.data(), options);
  std::printf("answer %d", status);
  for(double x : v) std::printf(" %.17g", x);
  for(double x : r) std::printf(" %.17g", x);
  std::printf("\n");
  return 0;
}
