"""Tensors of other libraries: DLPack, by which memory changes hands, and those in host memory as arrays."""
