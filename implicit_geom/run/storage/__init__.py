"""Runs and failed steps as files."""
