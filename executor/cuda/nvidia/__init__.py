"""NVIDIA's libraries as the rest calls them: the driver, cuBLAS, cuBLASLt."""
