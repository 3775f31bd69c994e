"""Lowering to NVIDIA GPUs: scheduled nests become kernels and a plan of launches."""
