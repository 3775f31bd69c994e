"""Graphs from what users write: Python functions on NumPy arrays, and IR text.

What a trace needs, lowest first:

* `python.users_code`, `python.caught`, `python.failures`, `python.generators`: facts of user code;
* `handlers`: the tables in which traced values look up what records a NumPy call;
* `tracing.pytree`, `tracing.recorder`: leaves of arguments, and the graph under construction;
* `tracing.operators`, `tracing.mutation`, `tracing.traced`, `tracing.outputs`: traced values;
* `python.substitutes`, `python.journal`, `python.scope`, `python.effects`: what user code sees;
* `numpy`: the handlers, of which `numpy.registry` enters each in its table;
* `tracing.tracer`: one trace; `tracing.control`, `tracing.inline`, `api`: what users call in it.
"""
