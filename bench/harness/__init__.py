"""How kernels are measured: systems in processes of their own, timed in turn, and told."""
