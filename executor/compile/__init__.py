"""From a graph to kernels: requests, workers, the disk cache, the check of each kernel."""
