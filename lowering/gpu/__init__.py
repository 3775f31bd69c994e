"""Lowering to NVIDIA GPUs: nests and rounds of loops become kernels and a plan of launches."""
