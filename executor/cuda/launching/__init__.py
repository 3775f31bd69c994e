"""Launch plans carried out: arguments of kernels, library products, CUDA graphs."""
