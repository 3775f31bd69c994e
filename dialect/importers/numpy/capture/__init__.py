"""One capture of a function: its watched run, the state that it reads, and its stored trace."""
