"""ATen, the operators of PyTorch: the table that FX graphs and TorchScript share."""
