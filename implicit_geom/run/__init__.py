"""Runs: `simulate`, `simulate_batch`, trajectories, what is recorded and saved."""
