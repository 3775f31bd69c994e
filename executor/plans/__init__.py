"""What runs a graph: plans of guards, kernel calls, evaluated ops and fallbacks."""
