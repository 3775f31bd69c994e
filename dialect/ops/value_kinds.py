"""The kinds of values, no tensors, that are observed to be speculated on (R3.4, R3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dataclass import dataclass
from ..ir.attrs import BOOL, BOOL_ARRAY, I64, I64_ARRAY, STR, AttrKind
from ..ir.types import BOOL_SCALAR, BOOLS, INT_SCALAR, INTS, Type, type_of
from ..ir.types import STR as TEXT

MAX_ITEMS = 256  # of a list, or characters: a record holds no more


@dataclass(frozen=True, slots=True)
class ValueKind:
    """One kind of observed values.

    Attributes:
        name: as the attribute of `ProfileValue` begins behind ``profiled_``.
        type: the type of the values.
        attribute: the kind of that attribute.
        keeps_none: None is stored as an empty list, which stands for it.
    """

    name: str
    type: Type
    attribute: AttrKind
    keeps_none: bool = False

    @property
    def attr(self) -> str:
        """The name of the attribute of `ProfileValue` that has the value."""
        return f"profiled_{self.name}"

    def stored(self, value: Any) -> Any:
        """What the attribute has for a value that was seen; None = it cannot be stored."""
        if value is None and self.keeps_none:
            return ()
        return value if str(type_of(value)) == str(self.type) and value is not None else None

    def constant(self, stored: Any) -> Any:
        """The value that stands for what was seen."""
        return None if self.keeps_none and stored == () else stored


KINDS: Mapping[str, ValueKind] = {
    kind.name: kind
    for kind in (
        ValueKind("int_list", INTS, I64_ARRAY),
        ValueKind("bool_list", BOOLS, BOOL_ARRAY),
        ValueKind("reduction_size", INTS, I64_ARRAY, keeps_none=True),
        ValueKind("view_size", INTS, I64_ARRAY),
        ValueKind("bool", BOOL_SCALAR, BOOL),
        ValueKind("int", INT_SCALAR, I64),
        ValueKind("string", TEXT, STR),
    )
}
"""By name, in the order in which a conditional constant is made of what is there (R3.4)."""

_AXES = ("int_list", "int")
LATE_KINDS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "native_dropout": {"train": ("bool",)},
    **{name: {"axes": _AXES, "keepdims": ("bool",)} for name in ("sum", "mean", "var", "std")},
    "sum_to_size": {"sizes": ("reduction_size",)},
    "reshape": {"shape": ("view_size",)},
    "reshape_copy": {"shape": ("view_size",)},
    **{name: {"axes": _AXES} for name in ("squeeze", "expand_dims", "squeeze_copy", "unsqueeze_copy")},
    "swapaxes": {"axis1": ("int",), "axis2": ("int",)},
    "transpose": {"perm": ("int_list",)},
    "native_layer_norm": {"shape": ("int_list",)},
    "native_layer_norm_backward": {"shape": ("int_list",), "mask": ("bool_list",)},
    **{name: {"training": ("bool",)} for name in ("batch_norm", "native_batch_norm", "batch_norm_index")},
    **{
        name: {"training": ("bool",), "mask": ("bool_list",)}
        for name in ("native_batch_norm_backward", "batch_norm_index_backward")
    },
    "gelu": {"approximate": ("string",)},
    "cast": {"dtype": ("int",)},
}
"""Op and attribute -> the kinds of values that it may be, observed where it is late (R3.5)."""


def late_kind(op: str, name: str, type_: Type) -> str:
    """The kind as which a value of this type is observed, given to an attribute of a late op; "" = it is not."""
    kinds = LATE_KINDS.get(op, {}).get(name, ())
    return next((kind for kind in kinds if str(KINDS[kind].type) == str(type_)), "")
