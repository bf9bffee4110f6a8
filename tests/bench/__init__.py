"""Figures of speed, printed for reading; ``python -m tests.bench`` runs them all."""
