"""TorchScript, torch's own language of graphs: its reader, control flow, lists, state and Python values."""
