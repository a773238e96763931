"""Shapes given by the text of their implicit function."""
