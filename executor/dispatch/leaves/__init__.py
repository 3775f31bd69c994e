"""The machine code of leaves: outputs, kernels on the host or a device, memory between them."""
