"""Chains that are longer than Python's stack is deep: nothing below is recursive in them."""

import sys

import numpy as np
import pytest
from mlir import ir
from native import kernel_of
from profuse.dialect.errors import ShapeError
from profuse.dialect.ir.postorder import postorder
from profuse.dialect.ir.size_algebra import parse_dim
from profuse.dialect.ir.symbolic import MAX_DEPTH, symbol
from profuse.lowering.emit.module import emit_module
from profuse.lowering.schedule.scheduling import schedule

DEEP = 2 * sys.getrecursionlimit()


def chain(count, body="arith.addf %e, %c : f64", lines=""):
    """A linalg function of ``count`` generics, each of which reads the one before."""
    ops = "\n".join(
        f"""%v{k} = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel"]}}
          ins(%{f"v{k - 1}" if k else "x"} : tensor<8xf64>) outs(%d : tensor<8xf64>) {{
          ^bb0(%e: f64, %o: f64):
            %r = {body}
            linalg.yield %r : f64 }} -> tensor<8xf64>"""
        for k in range(count)
    )
    return f"""#id = affine_map<(i) -> (i)>
      func.func @f(%x: tensor<8xf64>) -> tensor<8xf64> {{
        %c = arith.constant 0.5 : f64
        {lines}
        %d = tensor.empty() : tensor<8xf64>
        {ops}
        return %v{count - 1} : tensor<8xf64> }}"""


def emitted(text):
    """The loop form of a function, and its schedule."""
    from profuse.dialect.mlir.context import context
    from profuse.lowering.linalg.to_linalg import load_dialects

    with context() as ctx, ir.Location.unknown():
        load_dialects(ctx)
        module = ir.Module.parse(text)
        plan = schedule(module.body.operations[0].operation)
        return str(emit_module(plan)[0]), plan


def test_a_deep_chain_is_emitted_once_in_one_loop():
    text, plan = emitted(chain(DEEP))
    assert text.count("arith.addf") == DEEP
    assert text.count("scf.for") == 1
    assert len(plan.steps) == 1


def test_deep_scalars_outside_of_loops_are_emitted_once():
    steps = [f"%s{k} = arith.addf %{f's{k - 1}' if k else 'c'}, %c : f64" for k in range(DEEP)]
    text, _ = emitted(chain(1, f"arith.addf %e, %s{DEEP - 1} : f64", "\n".join(steps)))
    assert text.count("arith.addf") == DEEP + 1


def test_what_one_branch_reads_stays_in_the_branch():
    """Reads are made ahead of an iteration only where every iteration makes them."""
    text, _ = emitted(
        """#id = affine_map<(i) -> (i)>
        func.func @f(%x: tensor<8xf64>, %y: tensor<8xf64>) -> tensor<8xf64> {
          %c = arith.constant 0.5 : f64
          %d = tensor.empty() : tensor<8xf64>
          %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
            ins(%y : tensor<8xf64>) outs(%d : tensor<8xf64>) {
            ^bb0(%e: f64, %o: f64):
              %r = arith.mulf %e, %e : f64
              linalg.yield %r : f64 } -> tensor<8xf64>
          %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
            ins(%x, %a : tensor<8xf64>, tensor<8xf64>) outs(%d : tensor<8xf64>) {
            ^bb0(%e: f64, %f: f64, %o: f64):
              %p = arith.cmpf ogt, %e, %c : f64
              %r = scf.if %p -> f64 { scf.yield %f : f64 } else { scf.yield %e : f64 }
              linalg.yield %r : f64 } -> tensor<8xf64>
          return %b : tensor<8xf64> }"""
    )
    assert text.index("scf.if") < text.index("arith.mulf") < text.index("else")


def test_values_of_a_deep_chain():
    kernel = kernel_of(chain(300))
    x = np.arange(8.0)
    (found,) = kernel(x)
    np.testing.assert_array_equal(found, x + 150.0)


def test_postorder_yields_each_node_once_and_after_what_it_needs():
    needs = {n: [n - 1, n - 2] if n > 1 else [] for n in range(DEEP)}
    order = list(postorder([DEEP - 1, 5], needs.__getitem__))
    place = {node: k for k, node in enumerate(order)}
    assert len(place) == len(order) == DEEP
    assert all(place[m] < place[n] for n in order for m in needs[n])


def test_size_expressions_are_bounded_and_readable_up_to_the_bound():
    size = symbol("s0")
    for _ in range(MAX_DEPTH):
        size = (size + 1) // 2
    assert parse_dim(str(size)) == size
    with pytest.raises(ShapeError, match="too many steps"):
        (size + 1) // 2
