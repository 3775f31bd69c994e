"""Graphs from what users write: Python functions on NumPy arrays, and IR text.

What a trace needs, lowest first:

* `python.users_code`, `python.caught`, `python.failures`, `python.generators`: facts of user code;
* `handlers`: the tables in which traced values look up what records a NumPy call;
* `tracing.leaves`, `tracing.pytree`: the arrays and numbers in arguments, and their structure;
* `tracing.current`, `tracing.recorder`: the trace in progress, and the graph under construction;
* `tracing.operators`, `tracing.mutation`, `tracing.traced`, `tracing.outputs`: traced values;
* `python.substitutes`, `python.journal`, `python.scope`, `python.effects`: what user code sees;
* `numpy`: the handlers; `numpy.registry` enters each in its table;
* `tracing.tracer`: one trace; `tracing.control`, `tracing.inline`, `api`: what users call in it.
"""
