"""``profuse-opt``: run passes over IR text, or print what the dialect holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dialect.errors import FileError, ProfuseError
from ..dialect.reasons import Reason, summed
from .console import tool
from .kernels import FORMS, kernels_text
from .user_code import imported

if TYPE_CHECKING:
    from mlir import ir

SPLIT = "// -----"


@tool("profuse-opt")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; returns the exit status: 0, or 1 after an error on stderr."""
    options = _parser().parse_args(argv)
    try:
        output = _run(options)
        if options.output == "-":
            sys.stdout.write(output)
        else:
            _write(options.output, output)
    except ProfuseError as error:
        print(_error_text(error), file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="profuse-opt", description=__doc__)
    add = parser.add_argument
    add("file", nargs="?", default="-", help="IR text; - = standard input (the default)")
    add(
        "-p",
        "--pipeline",
        "--pass-pipeline",
        dest="pipeline",
        default="",
        metavar="PIPELINE",
        help="passes to run, e.g. 'dce,form-fusions{min-size=2},canonicalize'",
    )
    add(
        "--load",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a Python module that registers passes; may be repeated",
    )
    add(
        "--import",
        dest="source",
        metavar="INPUTS",
        help="FILE is of another system, as ONNX; print its graph for such arguments: 'f32[1,8], i64[2]'",
    )
    add("-o", dest="output", default="-", metavar="FILE", help="write the result to FILE")
    add(
        "--emit", choices=FORMS, default="ir", help="print IR, or PTX of the kernels, or what ptxas says that they need"
    )
    add("--split-input-file", action="store_true", help=f"process parts between '{SPLIT}' alone")
    add(
        "--verify-diagnostics",
        action="store_true",
        help="expect exactly the errors that '// expected-error' comments name",
    )
    add("--no-verify", action="store_true", help="do not check the meaning of the IR")
    add("--verify-each", action="store_true", help="check the meaning after every pass")
    add("--print-ir-after-all", action="store_true", help="print IR to stderr after every pass")
    add(
        "--print-ir-at-boundaries",
        action="store_true",
        help="print IR to stderr between passes, with the names of both neighbours",
    )
    add("--trace-passes", action="store_true", help="print the names of the passes in order to stderr, one a line")
    add("--print-locations", action="store_true", help="print the locations of ops")
    add("--stats", action="store_true", help="print what passes counted, and times, to stderr")
    add("--list-passes", action="store_true", help="print passes and named pipelines")
    add("--list-ops", action="store_true", help="print every op and what it supports")
    add("--emit-irdl", action="store_true", help="print the dialect as an IRDL module")
    return parser


def _run(options: argparse.Namespace) -> str:
    if options.pipeline or options.list_passes:
        # Passes of other rooms register themselves on import, as those of `dialect.passes` do.
        from ..dialect.autodiff import passes as _  # noqa: F401
        from ..lowering.gpu import gpu_passes  # noqa: F401
        from ..lowering.linalg import to_linalg_pass  # noqa: F401
    for name in options.load:
        imported(name, "PYTHONPATH says where modules are looked for")
    if options.list_passes:
        from .listing import passes_text

        return passes_text()
    if options.list_ops:
        from .listing import ops_text

        return ops_text()
    if options.emit_irdl:
        from ..dialect.mlir.irdl import irdl_text

        return irdl_text()
    from ..dialect.pipeline.syntax import parse_pipeline

    parse_pipeline(options.pipeline)  # a misspelt command is reported before any IR is looked at
    text, name = _read(options.file) if options.source is None else _imported(options.file, options.source)
    outputs = [_process(part, name, options) for part in _parts(text, options.split_input_file)]
    return f"{SPLIT}\n".join(outputs)


def _read(path: str) -> tuple[str, str]:
    from ..dialect.importers.mlir_text import read_text

    if path != "-":
        return read_text(path), path
    try:
        return sys.stdin.buffer.read().decode("utf-8"), "<stdin>"
    except UnicodeDecodeError as error:
        raise FileError(f"<stdin> is not UTF-8 text (byte {error.start})") from None


def _imported(path: str, inputs: str) -> tuple[str, str]:
    """The graph of a file of another system, recorded for arguments that descriptions tell."""
    import re

    import numpy as np

    from ..executor.arguments.array_spec import parse_spec
    from ..executor.functions.load import load

    rng = np.random.default_rng(0)
    function = load(path, background=False)
    function(*(parse_spec(part).sample(rng) for part in re.findall(r"[^\s,\[\]]+\[[^\]]*\]", inputs)))
    return function.ir("graph"), path


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None


def _parts(text: str, split: bool) -> list[str]:
    """Parts of a file, each padded with empty lines so that its positions are the file's."""
    if not split:
        return [text]
    parts: list[str] = []
    current: list[str] = []
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if line.strip() == SPLIT:
            parts.append("".join(current))
            current = ["\n"] * number
        else:
            current.append(line)
    return [*parts, "".join(current)]


def _process(text: str, name: str, options: argparse.Namespace) -> str:
    if options.verify_diagnostics:
        from .diagnostics import compare

        compare(text, name, lambda: _errors(text, name, options))
        return ""
    module = _load(text, name, options)
    if options.emit != "ir":
        return kernels_text(module, options.emit)
    return module.operation.get_asm(enable_debug_info=options.print_locations)


def _load(text: str, name: str, options: argparse.Namespace) -> ir.Module:
    from ..dialect.mlir.parse import parse_module

    module = parse_module(text, name, verify=not options.no_verify)
    _passes(module, options)
    return module


def _passes(module: ir.Module, options: argparse.Namespace) -> None:
    from ..dialect.pipeline.execution import run_pipeline

    timings: dict[str, float] | None = {} if options.stats else None
    trace: list[str] = []
    reasons: dict[str, list[Reason]] = {}
    statistics = run_pipeline(
        module,
        options.pipeline,
        verify_each=options.verify_each,
        print_after_all=_print_after if options.print_ir_after_all else None,
        boundary=_print_boundary if options.print_ir_at_boundaries else None,
        timings=timings,
        trace=trace,
        # The input is the file that this run was given.
        repro_dir="",
        reasons=reasons,
    )
    if options.trace_passes:
        print("\n".join(trace), file=sys.stderr)
    for label, seconds in (timings or {}).items():
        counted = dict(statistics.get(label, {}))
        counted |= {str(reason): reason.count for reason in summed(reasons.get(label, ()))}
        counts = ", ".join(f"{v} {k}" for k, v in sorted(counted.items()))
        print(f"{seconds * 1e3:8.2f} ms  {label}{': ' if counts else ''}{counts}", file=sys.stderr)


def _print_after(label: str, module: ir.Module) -> None:
    print(f"// ----- after {label}\n{module}", file=sys.stderr)


def _print_boundary(before: str, after: str, module: ir.Module) -> None:
    title = f"after {before or 'start'}, before {after or 'end'}"
    print(f"// ----- {title}\n{module}", file=sys.stderr)


def _errors(text: str, name: str, options: argparse.Namespace) -> list[tuple[str, str]]:
    """Errors of a run as (``file:line:col``, message), for `diagnostics.compare`."""
    from ..dialect.mlir.parse import parse_module
    from ..dialect.mlir.verify import verify_module

    try:
        module = parse_module(text, name, verify=False)
        if not options.no_verify:
            complaints = verify_module(module, name)
            if complaints:
                return [(str(d.loc or ""), d.message) for d in complaints]
        _passes(module, options)
    except ProfuseError as error:
        return [(str(error.loc or ""), error.what)]
    return []


def _error_text(error: ProfuseError) -> str:
    """``file:line:col: error: message`` on one line, the hint included."""
    where = f"{error.loc}: " if error.loc else "profuse-opt: "
    hint = f" ({error.hint})" if error.hint else ""
    first, *more = error.what.split("\n")
    lines = [f"{where}error: {first}{hint}"]
    # Further complaints of the verifier carry their own position.
    lines += [text.replace(": ", ": error: ", 1) for text in more]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
