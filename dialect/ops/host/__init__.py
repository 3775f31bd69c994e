"""Functions of libraries that the op `host_call` runs on real arrays: what is known of each."""
