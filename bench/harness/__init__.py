"""The harness of kernels: systems in processes of their own, timed in turn, and told."""
