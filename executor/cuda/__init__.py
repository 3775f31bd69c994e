"""Running fusion functions on NVIDIA GPUs: foreign device arrays in, launches, results out."""
