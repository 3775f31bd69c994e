"""Graphs of torch.fx: functions of torch traced to ATen, read as foreign graphs, with sizes as symbols."""
