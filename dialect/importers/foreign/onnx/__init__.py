"""ONNX models: read as plain graphs, and the table of ONNX's operators."""
