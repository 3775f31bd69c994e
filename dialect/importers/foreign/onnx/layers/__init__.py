"""Handlers of ONNX's operators for networks and other models: windows, norms, recurrence, resizing, trees."""
