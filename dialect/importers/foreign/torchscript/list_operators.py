"""Lists, tuples, dictionaries and optional values in TorchScript."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...numpy.tracing.current import trace_error
from ...numpy.tracing.operators import op
from ...numpy.tracing.traced_scalar import TracedScalar
from ..aten.all_aten import ATEN
from ..interpreter import NodeContext
from .carried_structures import UNINITIALIZED
from .script_branches import is_open
from .script_containers import ScriptDict, ScriptList, plain
from .script_table import script


@script("prim::ListConstruct")
def _new_list(call: NodeContext, *items: Any) -> ScriptList:
    return ScriptList(items)


@script("prim::TupleConstruct")
def _new_tuple(call: NodeContext, *items: Any) -> tuple[Any, ...]:
    return items


@script("prim::DictConstruct")
def _new_dict(call: NodeContext, *items: Any) -> ScriptDict:
    return ScriptDict(zip(items[::2], items[1::2], strict=True))


@script("prim::ListUnpack", "prim::TupleUnpack")
def _unpack(call: NodeContext, value: Any) -> Any:
    items = tuple(value)
    if len(items) != len(call.node.results):
        raise trace_error(f"{len(call.node.results)} values are taken from a list of {len(items)}")
    return items[0] if len(items) == 1 else items


@script("prim::TupleIndex")
def _tuple_item(call: NodeContext, value: Any, index: Any) -> Any:
    return value[_index(index)]


@script("prim::TupleSlice")
def _tuple_slice(call: NodeContext, value: Any, begin: int, end: int) -> Any:
    return value[begin:end]


@script("prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional", "prim::rangelist")
def _same(call: NodeContext, value: Any) -> Any:
    if value is None and "unwrap" in call.node.op:
        raise trace_error("an optional value that is None is unwrapped")
    return value


@script("prim::isinstance")
def _is_instance(call: NodeContext, value: Any, kinds: tuple[str, ...]) -> bool:
    return any(_is_of(value, kind) for kind in kinds)


def _is_of(value: Any, kind: str) -> bool:
    """True for a value of a type in TorchScript's notation; containers have elements of one type."""
    name, _, inner = kind.partition("[")
    inner = inner.removesuffix("]")
    if name == "Optional":
        return value is None or _is_of(value, inner)
    if name in ("List", "list"):
        elements = list(value.items) if type(value) is ScriptList else []
        return type(value) is ScriptList and (not elements or not inner or _is_of(elements[0], inner))
    if name in ("Dict", "dict", "Tuple", "tuple"):
        return type(value) is (ScriptDict if name in ("Dict", "dict") else tuple)
    if name == "Tensor":
        return hasattr(value, "ndim")
    if name not in _KINDS:
        raise trace_error(f"whether a value is of type {kind} is not known while tracing")
    return _KINDS[name] is (value.kind if type(value) is TracedScalar else type(value))


_KINDS = {"int": int, "float": float, "complex": complex, "bool": bool, "str": str, "NoneType": type(None)}


@script("prim::Uninitialized")
def _uninitialized(call: NodeContext) -> Any:
    return UNINITIALIZED


def _index(index: Any) -> int:
    """A Python int, guarded where it is traced; raises TraceError for one that only a run tells."""
    if is_open(index):
        raise trace_error("an element of a list is asked for that only a run tells", "stack the list into a tensor")
    return int(index)


def _items(value: Any) -> Any:
    return list(value) if type(value) is tuple else value.known()


@script("aten::__getitem__")
def _get_item(call: NodeContext, value: Any, index: Any) -> Any:
    if type(value) is ScriptDict:
        return value.items[index]
    if type(value) is ScriptList and value.growing is not None:
        return value.growing[index]
    items, place = value if isinstance(value, str) else _items(value), _index(index)
    if not -len(items) <= place < len(items):
        raise trace_error(f"a list of {len(items)} elements has none of number {place}")
    return items[place]


def _changing_items(value: Any) -> Any:
    """The items of a list or dictionary that is going to change."""
    if type(value) not in (ScriptList, ScriptDict):
        raise trace_error("a list is changed that may be the module's, under another name", "write self.items")
    items = value.known() if type(value) is ScriptList else value.items
    value.change()
    return items


@script("aten::_set_item")
def _set_item(call: NodeContext, value: Any, index: Any, item: Any) -> Any:
    items = _changing_items(value)
    items[index if type(value) is ScriptDict else _index(index)] = item
    return value if call.node.results else ()


@script("aten::append")
def _append(call: NodeContext, value: Any, item: Any) -> Any:
    if type(value) is not ScriptList:
        _changing_items(value)
    value.append(item)
    return value


def _changing(method: str) -> None:
    @script(f"aten::{method}")
    def change(call: NodeContext, value: Any, *args: Any) -> Any:
        items = _changing_items(value)
        result = getattr(items, method)(*(_items(x) if type(x) is ScriptList else x for x in args))
        return result if call.node.results else ()


for _method in ("insert", "pop", "clear", "extend", "reverse"):
    _changing(_method)


@script("aten::add_")
def _extended(call: NodeContext, value: Any, other: Any) -> Any:
    _changing_items(value).extend(_items(other))
    return value


@script("aten::Delete")
def _delete(call: NodeContext, value: Any, index: Any) -> Any:
    items = _changing_items(value)
    del items[index if type(value) is ScriptDict else _index(index)]
    return ()


@script("aten::len")
def _length(call: NodeContext, value: Any) -> Any:
    if type(value) is ScriptList and value.growing is not None:
        return value.growing.length()
    return len(value.items) if type(value) is ScriptDict else len(value)


@script("aten::copy", "aten::list")
def _copy(call: NodeContext, value: Any) -> Any:
    if type(value) is ScriptDict:
        return ScriptDict(value.items.items())
    return ScriptList(value if isinstance(value, str) else _items(value))


@script("aten::slice")
def _slice(call: NodeContext, value: Any, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    place = slice(*(None if x is None else _index(x) for x in (start, end, step)))
    return value[place] if isinstance(value, str) else ScriptList(_items(value)[place])


@script("aten::__contains__")
def _contains(call: NodeContext, value: Any, item: Any) -> Any:
    if type(value) is ScriptDict:
        return item in value.items
    if isinstance(value, str):
        return item in value
    result: Any = False
    for element in _items(value):
        equal = element == item
        if is_open(equal):
            result = op("bitwise_or", result, equal)
        elif equal:
            return True
    return result


@script("aten::keys", "aten::values", "aten::items")
def _views(call: NodeContext, value: ScriptDict) -> ScriptList:
    name = call.node.op.partition("::")[2].partition(".")[0]
    return ScriptList(getattr(value.items, name)())


@script("aten::get")
def _get(call: NodeContext, value: ScriptDict, key: Any, default: Any = None) -> Any:
    return value.items.get(key, default)


@script("aten::list_with_default")
def _list_with_default(call: NodeContext, value: Any, defaults: Any) -> ScriptList:
    return ScriptList(y if x is None else x for x, y in zip(_items(value), _items(defaults), strict=True))


@script("aten::sum")
def _sum(call: NodeContext, value: Any) -> Any:
    return sum(_items(value))


@script("aten::any", "aten::all")
def _any_or_all(call: NodeContext, value: Any) -> Any:
    joins = "bitwise_or" if "any" in call.node.op else "bitwise_and"
    result: Any = joins == "bitwise_and"
    for element in _items(value):
        holds = element != 0
        if is_open(holds) or is_open(result):
            result = op(joins, result, holds)
        else:
            result = bool(result or holds) if joins == "bitwise_or" else bool(result and holds)
    return result


@script("aten::sort")
def _sort(call: NodeContext, value: Any, is_descending: bool = False) -> Any:
    items = _changing_items(value)
    items[:] = sorted(map(_known, items), reverse=is_descending)
    return ()


@script("aten::remove")
def _remove(call: NodeContext, value: Any, item: Any) -> Any:
    items = _changing_items(value)
    del items[[_known(x) for x in items].index(_known(item))]
    return ()


@script("aten::mul_")
def _repeated(call: NodeContext, value: Any, count: Any) -> Any:
    items = _changing_items(value)
    items[:] = items * _index(count)
    return value


@script("aten::update")
def _update(call: NodeContext, value: Any, other: ScriptDict) -> Any:
    _changing_items(value).update(other.items)
    return ()


@script("aten::setdefault")
def _set_default(call: NodeContext, value: ScriptDict, key: Any, default: Any) -> Any:
    return value.items[key] if key in value.items else _changing_items(value).setdefault(key, default)


@script("aten::dict")
def _dict(call: NodeContext, items: Any = ()) -> ScriptDict:
    return ScriptDict(items.items.items() if type(items) is ScriptDict else _items(items))


@script("aten::sorted")
def _sorted(call: NodeContext, value: Any) -> ScriptList:
    return ScriptList(sorted(map(_known, _items(value))))


def _known(value: Any) -> Any:
    """A number or text that is known, guarded where it is traced; raises TraceError for one that only a run tells."""
    if is_open(value) or hasattr(value, "ndim"):
        raise trace_error("an order of a list, or a place in it, that only a run tells", "make a tensor of the list")
    return _plain(value)


@script("aten::index", "aten::count")
def _find(call: NodeContext, value: Any, item: Any) -> int:
    name = call.node.op.partition("::")[2].partition(".")[0]
    return getattr([_known(x) for x in _items(value)], name)(_known(item))


def _plain(value: Any) -> Any:
    return value.bake() if isinstance(value, TracedScalar) else value


@script("stack")
def _stack(call: NodeContext, tensors: Any, dim: int = 0) -> Any:
    if type(tensors) is not ScriptList or tensors.growing is None:
        return _of_aten("stack", call, plain(tensors), dim)
    rows = tensors.growing.stacked()
    return np.moveaxis(rows, 0, dim % rows.ndim) if dim else rows


@script("cat", "concat")
def _cat(call: NodeContext, tensors: Any, dim: int = 0) -> Any:
    if type(tensors) is not ScriptList or tensors.growing is None:
        return _of_aten("cat", call, plain(tensors), dim)
    rows = tensors.growing.stacked()
    rank = rows.ndim - 1
    if not rank:
        raise trace_error("tensors without axes are joined")
    axis = dim % rank
    rows = np.moveaxis(rows, 0, axis)
    shape = rows.shape
    return rows.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])


def _of_aten(name: str, call: NodeContext, tensors: Any, dim: int) -> Any:
    if not tensors:
        raise trace_error(f"{name} of a list without tensors")
    handler = ATEN.find(name)
    assert handler is not None
    return handler(call, tensors, dim)


__all__: list[str] = []
