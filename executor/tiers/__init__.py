"""Which plan a graph runs by, and when it gets another: the two executors."""
