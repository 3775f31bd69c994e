"""Analyses of programs that do not run: which values share memory, and who writes it."""
