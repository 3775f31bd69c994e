"""The text of the arguments of host calls."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.dialect.errors import IRError
from profuse.dialect.ops.host.call_text import CallTemplate, OperandPlace, arguments_text, parsed_arguments


def test_text_is_read_back_bit_for_bit():
    plain = (None, True, 3, -2.5, -0.0, 'a"b\n', (), (1,), [1, (2, [3])], slice(None, -3), ...)
    numbers = (float("nan"), float("-inf"), complex(-0.0, -1.0), np.float32(0.1), np.uint8(3))
    given = CallTemplate((OperandPlace(0), *plain, *numbers), {"dtype": np.dtype("f4"), "keys": (OperandPlace(1),)})
    text = arguments_text(given)
    read = parsed_arguments(text)
    assert read.positional[: 1 + len(plain)] == given.positional[: 1 + len(plain)]
    assert read.named == given.named
    assert arguments_text(read) == text
    assert type(read.positional[-2]) is np.float32
    assert list(read.places()) == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "x0)",
        "f(x0)",
        "x0 + 1",
        "y",
        "x0.T",
        "*x0",
        "**{}",
        "lambda: 0",
        "[i for i in x0]",
        "dtype('f31')",
        "float('1')",
        "'",
        "__import__('os')",
        "b'a'",
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(IRError, match="no list of arguments"):
        parsed_arguments(text)


def test_other_objects_have_no_text():
    with pytest.raises(TypeError, match="cannot be part of a graph"):
        arguments_text(CallTemplate((object(),), {}))
