"""The two executors, which decide by which plan a graph runs, and when it gets another."""
