"""The table of ONNX's operators, and how handlers are registered in it."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from ....errors import TraceError
from ..interpreter import NodeContext
from ..operator_table import OperatorTable
from ..size_values import all_sizes, as_array
from .onnx_texts import apart, as_texts, together

ONNX = OperatorTable("ONNX", home=(f"{__package__}.all_onnx", "ONNX"))
ONNX.advice["ai.onnx.ml.ZipMap"] = (
    "its dictionaries have to be outputs of the model; there are none by to_onnx(model, x, options={'zipmap': False})"
)


class NodeResults(tuple):
    """The results of an operator that has several; those behind the last that a node names are dropped."""


def onnx_op(
    *names: str,
    sizes: Callable[..., Any] | None = None,
    kept: tuple[int, ...] = (),
    whole: bool = False,
    texts: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorate the handler of the operators with these names.

    Args:
        names: operators; those of other domains than ONNX's own have it before them, as ``"ai.onnx.ml.Scaler"``,
            and ``"Softmax-1"`` is the one whose meaning has changed since that version.
        sizes: computes the operator of sizes, and of sizes alone; it takes the operands, where constants are sizes,
            too, and those attributes that it names. NotImplemented = it is none for sizes after all.
        kept: the operands that the handler takes as sizes, where they are sizes; for all others it gets arrays.
        whole: so it takes all operands.
        texts: it takes `Texts`; others get places for texts, if all that they do is to move or to compare them.

    The attributes of a node are keyword arguments, whose defaults are ONNX's; other attributes are refused.
    A handler gives one result, or `NodeResults`.
    """

    def add(handler: Callable) -> Callable:
        form, named = _HandlerForm(handler), _keywords(sizes)

        @functools.wraps(handler)
        def call(context: NodeContext, *operands: Any, **attributes: Any) -> Any:
            form.check(context, operands, attributes)
            is_moved = is_open = False
            if context.interpreter.graph.texts is not None:
                operands = tuple(as_texts(context, x) for x in operands)
                if not texts:
                    operands, is_moved, is_open = apart(context, operands)
            vectors = all_sizes(operands) if sizes is not None else None
            result: Any = NotImplemented
            if vectors is not None and sizes is not None:
                values = form.defaults | attributes
                result = sizes(context, *vectors, **{name: values[name] for name in named})
            if result is NotImplemented:
                arrays = (x if whole or k in kept else as_array(x) for k, x in enumerate(operands))
                result = handler(context, *arrays, **attributes)
            if is_moved:
                result = together(result, is_open=is_open)
            count = len(context.node.results)
            if isinstance(result, NodeResults):
                return result[0] if count == 1 else tuple(result[:count])
            return result if count == 1 else (result,)

        ONNX.register(*names)(call)
        return handler

    return add


class _HandlerForm:
    """What a handler takes, compared more quickly than by `inspect.Signature.bind`: Python runs some at each call.

    Attributes:
        defaults: of the attributes that a node may leave out.
    """

    def __init__(self, handler: Callable) -> None:
        self._signature = inspect.signature(handler)
        _, *parameters = self._signature.parameters.values()
        operands = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
        kinds = {p.kind for p in parameters}
        named = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
        self._least = sum(p.default is p.empty for p in operands)
        self._most = math.inf if inspect.Parameter.VAR_POSITIONAL in kinds else len(operands)
        self._takes_any = inspect.Parameter.VAR_KEYWORD in kinds
        self._names = {p.name for p in named}
        self._needed = {p.name for p in named if p.default is p.empty}
        self.defaults = {p.name: p.default for p in named if p.default is not p.empty}

    def check(self, context: NodeContext, operands: tuple, attributes: dict[str, Any]) -> None:
        """Raise TraceError for operands or attributes that the handler does not take."""
        names = attributes.keys()
        is_named = self._needed <= names and (self._takes_any or names <= self._names)
        if is_named and self._least <= len(operands) <= self._most:
            return
        try:
            self._signature.bind(context, *operands, **attributes)
        except TypeError as error:
            raise TraceError(f"{context.node.op}: {error}, in the versions of ONNX that are known") from None


def _keywords(function: Callable | None) -> tuple[str, ...]:
    """The attributes that a function names."""
    if function is None:
        return ()
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
