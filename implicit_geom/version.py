"""The version of the distribution and of the files it writes."""

__version__ = "0.1.0"
