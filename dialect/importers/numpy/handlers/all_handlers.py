"""The ops, and the handlers that every trace needs: importing this module registers them.

A scope of a trace imports it, as every trace has one.
"""

from .... import ops
from . import assignment, creation, joins, methods, progressions, reductions, selection, ufuncs

REGISTERED = (ops, assignment, creation, joins, methods, progressions, reductions, selection, ufuncs)

creation.enter_substitutes()
