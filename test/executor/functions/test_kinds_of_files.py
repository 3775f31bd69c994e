"""Files that cannot be loaded: the error tells what the file is, and what to do; none is read as something else."""

from __future__ import annotations

import pickle

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import FileError, IRError
from profuse.dialect.importers.foreign.file_kinds import MLIR_BYTECODE, is_stablehlo, is_text


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.onnx", b"", "is empty"),
        ("graph.mlir", b"", "is empty"),
        ("model.onnx", b"\0" * 9000, "as an ONNX model does"),
        ("array.npy", b"\x93NUMPY\x01\0v\0", "numpy.load"),
        ("data.pkl", pickle.dumps({"a": 1}), "pickle.load"),
        ("exported.bin", b"\x10\0\0\0" + MLIR_BYTECODE + b"\0\0", "mlir_module_serialized"),
        ("image.png", b"\x89PNG\r\n\x1a\n\0", "none of what can be loaded"),
    ],
)
def test_what_a_file_is(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FileError, match=said) as info:
        pf.load(path)
    assert str(path) in info.value.what


def test_text_is_told_from_bytes():
    assert is_text("é".encode()[:1])  # a letter that is cut at the end of what was read
    assert not is_text("é".encode()[:1], is_whole=True) and not is_text(b"\xff") and not is_text(b"a\0")
    assert is_stablehlo(b'  %0 = "stablehlo.add"(%a, %b)') and is_stablehlo(b"\n  stablehlo.return %0")
    assert not is_stablehlo(b'loc("stablehlo.py":1:2)') and not is_stablehlo(b"// the stablehlo. text")


def test_text_of_stablehlo_behind_a_long_head(tmp_path):
    """Ops of a module with many arguments stand far behind its beginning."""
    text = f"""// {"many arguments " * 1000}
"builtin.module"() ({{
  "func.func"() <{{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"}}> ({{
  ^bb0(%a: tensor<2xf32>):
    %r = "stablehlo.add"(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%r) : (tensor<2xf32>) -> ()
  }}) : () -> ()
}}) : () -> ()
"""
    path = tmp_path / "module.mlir"
    path.write_text(text, encoding="utf-8")
    f = pf.load(path, background=False)
    x = np.arange(2, dtype=np.float32)
    np.testing.assert_array_equal(f(x), x + x)
    copy = pickle.loads(pickle.dumps(f))  # its table of operators is code, which a pickle finds by name
    np.testing.assert_array_equal(copy(x), x + x)
    path.write_text("no module", encoding="utf-8")
    with pytest.raises(IRError, match="custom op 'no' is unknown"):
        pf.load(path)
