"""Launches of loops that threads share, in the LLVM dialect.

`share` has made a function of each such loop, and MLIR has lowered it, with one argument for each
part of an array's descriptor. A launch decides on the size of chunks by the estimated work, stores
its arguments in memory, and has the pool call a part with each chunk.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...emit.chunk_calls import RUN
from ...schedule.chunks import MOST
from ...thread_pool import POOL, WORDS, WORK
from ..signature import function_named

LAUNCH = "_launch"  # ends the name of the function that launches a loop


def add_launches(module: ir.Module, names: Sequence[str]) -> None:
    """Give the functions that launch shared loops their bodies."""
    for name in names:
        rounds = function_named(module, name)
        rounds.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        types = [str(a.type) for a in rounds.regions[0].blocks[0].arguments][:-2]
        rounds.attributes["arg_attrs"] = ir.ArrayAttr.get(_no_alias(types))
        function_named(module, name + LAUNCH).erase()
        text = ir.Module.parse(_text(name, types), module.context)
        for view in text.body.operations:
            if len(view.operation.regions[0].blocks):
                view.operation.clone(ir.InsertionPoint(module.body))


def _no_alias(types: Sequence[str]) -> list[ir.Attribute]:
    """Attributes of arguments: no two arrays overlap, and the second pointer of each is used."""
    attributes = [ir.DictAttr.get({}) for _ in (*types, "begin", "end")]
    for place in range(1, len(types)):
        if types[place - 1 : place + 2] == ["!llvm.ptr", "!llvm.ptr", "i64"]:
            attributes[place] = ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})
    return attributes


def _text(name: str, types: Sequence[str]) -> str:
    """The functions that launch a loop, and that run one chunk of it, as text.

    ``types``: of the arguments of the loop's function, without those for the rounds.
    """
    names = [f"%a{k}" for k in range(len(types))]
    packed = f"!llvm.struct<({', '.join(t.removeprefix('!llvm.') for t in types)})>"
    signature = ", ".join([*types, "i64", "i64"])
    arguments = "".join(f"{a}: {t}, " for a, t in zip(names, types, strict=True))

    def each(text: str) -> str:
        """A text for each argument: its number, and its type."""
        return "\n".join(text.format(k=k, t=t) for k, t in enumerate(types))

    def call(*of: str) -> str:
        return f"llvm.call @{name}({', '.join([*names, *of])}) : ({signature}) -> ()"

    place = f"%p{{k}} = llvm.getelementptr %array[0, {{k}}] : (!llvm.ptr) -> !llvm.ptr, {packed}\n"
    return f"""
llvm.mlir.global external @{POOL}() {{addr_space = 0 : i32}} : !llvm.array<{WORDS} x i64>
llvm.func @{RUN}(!llvm.ptr, !llvm.ptr, i64, i64)
llvm.func @{name}({signature})
llvm.func internal @{name}_part(%array: !llvm.ptr, %begin: i64, %end: i64) {{
  {each(place + "%a{k} = llvm.load %p{k} : !llvm.ptr -> {t}")}
  {call("%begin", "%end")}
  llvm.return
}}
llvm.func internal @{name}{LAUNCH}({arguments}%count: i64, %work: f64) {{
  %one = llvm.mlir.constant(1 : i64) : i64
  %array = llvm.alloca %one x {packed} : (i64) -> !llvm.ptr
  %pool = llvm.mlir.addressof @{POOL} : !llvm.ptr
  %slot = llvm.getelementptr %pool[{WORK}] : (!llvm.ptr) -> !llvm.ptr, i64
  %chunk = llvm.load %slot : !llvm.ptr -> f64
  %least = llvm.mlir.constant(1.0 : f64) : f64
  %most = llvm.mlir.constant({float(MOST)} : f64) : f64
  %wanted = llvm.fdiv %work, %chunk : f64
  %some = llvm.intr.maxnum(%wanted, %least) : (f64, f64) -> f64
  %few = llvm.intr.minnum(%some, %most) : (f64, f64) -> f64
  %parts = llvm.fptosi %few : f64 to i64
  %sum = llvm.add %count, %parts : i64
  %above = llvm.sub %sum, %one : i64
  %grain = llvm.udiv %above, %parts : i64
  {each(place + "llvm.store %a{k}, %p{k} : {t}, !llvm.ptr")}
  %part = llvm.mlir.addressof @{name}_part : !llvm.ptr
  llvm.call @{RUN}(%part, %array, %count, %grain) : (!llvm.ptr, !llvm.ptr, i64, i64) -> ()
  llvm.return
}}
"""
