"""Facts of Python code and objects that hold without a trace."""
