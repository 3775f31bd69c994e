"""The user's Python code under a trace: its globals, calls, caught errors and effects."""
