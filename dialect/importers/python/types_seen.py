"""The substitute for ``type`` in a traced function: it tells what a traced value stands for.

``isinstance`` and ``x.__class__`` tell that already, as traced values define ``__class__``; but no
class can change what the builtin ``type`` says.
"""

from __future__ import annotations

from typing import Any

from ..tracing.operators import Recording
from .ranges import LazyRange, traced_range


class _Meta(type):
    """Makes calls of `traced_type`, and checks against it, behave like those of ``type``."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is not traced_type:  # a metaclass of the user's, derived from it
            return super().__call__(*args, **kwargs)
        if len(args) == 1 and not kwargs:
            kind = type(args[0])
            if issubclass(kind, Recording):
                return args[0].__class__
            if kind is range or kind is LazyRange:
                return traced_range
        return type(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, type)
            if cls is traced_type
            else super().__instancecheck__(instance)
        )

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return (
            issubclass(subclass, type)
            if cls is traced_type
            else super().__subclasscheck__(subclass)
        )


class traced_type(type, metaclass=_Meta):
    """Stands in for the builtin ``type`` in a traced function.

    ``traced_type(x)`` of a traced array is ``np.ndarray``, of a traced NumPy scalar its type, of a
    traced Python number ``int``, ``float``, ``complex`` or ``bool``: real classes, to be compared,
    called and asked for their names. Of everything else, and with three arguments, it is ``type``.
    """


__all__ = ["traced_type"]
