"""Impacts as events within a step: its flights, the impacts between them, islands apart."""
