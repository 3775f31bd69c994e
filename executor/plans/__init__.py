"""The plans that run a graph: guards, kernel calls, evaluated ops and fallbacks."""
