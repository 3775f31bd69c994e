"""Handlers of ONNX's operators on tensors, sequences and blocks: what NumPy and Python have as well."""
