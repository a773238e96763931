// Siconos in C++: an ellipsoid on the plane z = 0, run by lines on the standard input (`siconos_peer.py`).
//
// A line holds the numbers of `Problem`, then the steps of consecutive pieces of the motion. The answer is one
// line: the seconds of each piece, then q and twist (13 numbers) at the start and at the end of each piece; or
// "error" and a reason. Every line starts the motion anew. Siconos's own words go to the standard error.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <unistd.h>
#include <vector>

#include <SiconosKernel.hpp>
#include <SolverOptions.h>

namespace
{

// The exact gap of an ellipsoid with the plane, from its support point in the direction -z:
//   p = x - R (c + A^2 n / |A n|),   n = R^T e_z,   y = p_z
// (x centre of mass, c its place in the shape's frame, A = diag(axes)).
class EllipsoidOnPlane : public NewtonEuler3DR
{
public:
  EllipsoidOnPlane(const double* axes, const double* com)
  {
    for(int i = 0; i < 3; ++i)
    {
      squares[i] = axes[i] * axes[i];
      centre[i] = com[i];
    }
  }

  void computeh(double, const BlockVector& q0, SiconosVector& y) override
  {
    const SiconosVector& q = *q0.vector(0);
    const double w = q(3), a = q(4), b = q(5), c = q(6), s = 1 / (w * w + a * a + b * b + c * c);
    const double R[3][3] = {
      {1 - 2 * s * (b * b + c * c), 2 * s * (a * b - w * c), 2 * s * (a * c + w * b)},
      {2 * s * (a * b + w * c), 1 - 2 * s * (a * a + c * c), 2 * s * (b * c - w * a)},
      {2 * s * (a * c - w * b), 2 * s * (b * c + w * a), 1 - 2 * s * (a * a + b * b)}};
    double length = 0;
    for(int i = 0; i < 3; ++i) length += squares[i] * R[2][i] * R[2][i];
    length = std::sqrt(length);
    for(int k = 0; k < 3; ++k)
    {
      double p = q(k);
      for(int i = 0; i < 3; ++i) p -= R[k][i] * (centre[i] + squares[i] * R[2][i] / length);
      (*_Pc1)(k) = (*_Pc2)(k) = p;
      (*_Nc)(k) = k == 2 ? 1 : 0;
    }
    (*_Pc2)(2) = 0;
    y(0) = (*_Pc1)(2);
  }

private:
  double squares[3], centre[3];
};

struct Problem
{
  double mass, inertia[9], com[3], axes[3], mu, gravity;
  double q[7], twist[6];  // centre of mass and w, x, y, z; velocity in the world's, spin in the body's axes
  double step, theta, iterations, tolerance, solver;  // tolerance and solver: 0 for Siconos' own
};
static_assert(sizeof(Problem) == 36 * sizeof(double), "no padding: it is read as an array");

std::vector<double> solved(const Problem& p, const std::vector<double>& pieces)
{
  auto q = std::make_shared<SiconosVector>(7), twist = std::make_shared<SiconosVector>(6);
  auto inertia = std::make_shared<SimpleMatrix>(3, 3);
  for(int i = 0; i < 7; ++i) (*q)(i) = p.q[i];
  for(int i = 0; i < 6; ++i) (*twist)(i) = p.twist[i];
  for(int i = 0; i < 9; ++i) (*inertia)(i / 3, i % 3) = p.inertia[i];
  auto weight = std::make_shared<SiconosVector>(3);
  weight->zero();
  (*weight)(2) = -p.mass * p.gravity;
  auto body = std::make_shared<NewtonEulerDS>(q, twist, p.mass, inertia);
  body->setFExtPtr(weight);

  double steps = 2;  // the events' manager looks one step ahead
  for(double count : pieces) steps += count;
  auto model = std::make_shared<NonSmoothDynamicalSystem>(0.0, steps * p.step);
  model->insertDynamicalSystem(body);
  auto law = std::make_shared<NewtonImpactFrictionNSL>(0.0, 0.0, p.mu, 3);
  auto contact = std::make_shared<Interaction>(law, std::make_shared<EllipsoidOnPlane>(p.axes, p.com));
  model->link(contact, body);
  auto problem = p.solver > 0 ? std::make_shared<FrictionContact>(3, static_cast<int>(p.solver))
                              : std::make_shared<FrictionContact>(3);
  auto simulation = std::make_shared<TimeStepping>(
    model, std::make_shared<TimeDiscretisation>(0.0, p.step), std::make_shared<MoreauJeanOSI>(p.theta), problem);
  if(p.tolerance > 0)
  {
    problem->numericsSolverOptions()->dparam[SICONOS_DPARAM_TOL] = p.tolerance;
    simulation->setNewtonTolerance(p.tolerance);
  }
  simulation->setNewtonMaxIteration(static_cast<unsigned>(p.iterations));
  if(p.iterations == 1) simulation->setNewtonOptions(SICONOS_TS_LINEAR);

  std::vector<double> seconds, states;
  auto keep = [&] {
    for(int i = 0; i < 7; ++i) states.push_back((*body->q())(i));
    for(int i = 0; i < 6; ++i) states.push_back((*body->twist())(i));
  };
  keep();
  for(double count : pieces)
  {
    const auto started = std::chrono::steady_clock::now();
    for(int k = 0; k < count; ++k)
    {
      simulation->computeOneStep();
      simulation->nextStep();
    }
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
    keep();
  }
  seconds.insert(seconds.end(), states.begin(), states.end());
  return seconds;
}

}  // namespace

int main()
{
  FILE* answers = fdopen(dup(1), "w");
  dup2(2, 1);
  std::string line;
  while(std::getline(std::cin, line))
  {
    std::istringstream words(line);
    std::vector<double> numbers;
    for(double number; words >> number;) numbers.push_back(number);
    try
    {
      const std::size_t head = sizeof(Problem) / sizeof(double);
      if(numbers.size() <= head) throw std::runtime_error("a line holds a problem and its pieces");
      const auto& problem = *reinterpret_cast<const Problem*>(numbers.data());
      for(double number : solved(problem, {numbers.begin() + head, numbers.end()}))
        std::fprintf(answers, "%.17g ", number);
    }
    catch(const std::exception& error)
    {
      std::fprintf(answers, "error %s", error.what());
    }
    catch(...)
    {
      std::fprintf(answers, "error of Siconos: see above");
    }
    std::fprintf(answers, "\n");
    std::fflush(answers);
  }
}
