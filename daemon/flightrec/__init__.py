"""A flight recorder for shell commands."""

__version__ = "0.1.0"
