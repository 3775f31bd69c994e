"""Recipes and argument specs: what keys the plans of the spec-keyed executor."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.ir.dtypes import F32
from profuse.dialect.ir.gradient_mode import gradient_mode, gradients
from profuse.dialect.ir.op import Op, op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.types import BOOL_SCALAR, INT_SCALAR, ListType, TensorType
from profuse.dialect.ops import seldom  # noqa: F401
from profuse.dialect.trees.pytree import flatten
from profuse.executor.arguments.argument_spec import (
    NESTING_LIMIT,
    UNDEFINED,
    ArgumentSpec,
    RecipeStep,
    TensorRecord,
    compile_recipe,
    record_of,
)
from profuse.executor.settings.differentiation import needs_gradient


class Learnable(np.ndarray):
    """An array that requires gradients."""

    requires_grad = True


def learnable(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32).view(Learnable)


def program(*types, asked=()) -> Program:
    """A graph with inputs of these types, which asks whether some of them are defined."""
    made = Program("main")
    inputs = tuple(made.new_value(t) for t in types)
    instrs = [Instr(op_named("all_nonzero"), (inputs[k],), (made.new_value(BOOL_SCALAR),)) for k in asked]
    made.body = Block(inputs, instrs, inputs)
    return made


TENSORS = compile_recipe(program(TensorType(), TensorType()))


def spec(*values) -> ArgumentSpec:
    return compile_recipe(program(*[TensorType()] * len(values))).spec(values)


def f32(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def test_sizes_and_strides_are_not_in_it():
    """R2.7: (2,3) and (5,7) float are one spec, however they lie in memory."""
    assert spec(f32(2, 3)) == spec(f32(5, 7)) == spec(f32(3, 2).T)
    assert hash(spec(f32(2, 3))) == hash(spec(f32(5, 7)))


@pytest.mark.parametrize(
    "other",
    [np.zeros((2, 3, 1), np.float32), np.zeros((2, 3), np.float64), None, 1.5, learnable(2, 3)],
    ids=["rank", "dtype", "undefined", "number", "requires-grad"],
)
def test_what_makes_another_spec(other):
    """R2.7: rank, dtype, definedness and requires_grad each do."""
    assert spec(other) != spec(f32(2, 3))


def test_device_makes_another_spec():
    """R2.7: device type and index are compared."""
    cpu, gpu, second = (
        ArgumentSpec((TensorRecord(np.dtype("f4"), 1, False, device, index),))
        for device, index in (("cpu", -1), ("cuda", 0), ("cuda", 1))
    )
    assert len({cpu, gpu, second}) == 3
    assert gpu.records[0].type().device == "cuda:0"


def test_gradient_mode_counts():
    """R2.7: requires_grad is the tensor's flag AND gradient mode."""
    on = spec(learnable(2))
    assert on.records[0].requires_grad is True
    with gradients(False):
        assert gradient_mode() is False
        off = spec(learnable(2))
    assert gradient_mode() is True
    assert off.records[0].requires_grad is False
    assert off != on
    assert off == spec(f32(2))


def test_presence_bits_come_before_records():
    """R2.7: an absent optional has a bit and no record; the bits are compared first."""
    recipe = compile_recipe(program(TensorType(), TensorType(), asked=[0, 1]))
    first, second = recipe.spec([f32(2), None]), recipe.spec([None, f32(2)])
    assert first.records == second.records == (record_of(f32(2)),)
    assert (first.present, second.present) == ((True, False), (False, True))
    assert first != second
    assert str(first) == "f32[?], absent"


def test_the_hash_is_combined_from_counts_and_records():
    """R2.7: it does not look at the presence bits themselves, only at how many there are."""
    records = (record_of(f32(2)),)
    assert hash(ArgumentSpec(records, (True, False))) == hash(ArgumentSpec(records, (False, True)))
    assert hash(ArgumentSpec(records)) != hash(ArgumentSpec(records, (True,)))


def test_recipe_skips_what_is_no_tensor():
    """R2.8: numbers and lists are passed over, neighbours as one skip."""
    types = [INT_SCALAR, ListType(), TensorType(), INT_SCALAR]
    recipe = compile_recipe(program(*types))
    assert recipe.steps == (RecipeStep("skip", 2), RecipeStep("tensor"), RecipeStep("skip"))
    made = recipe.spec([3, [f32(2)], f32(4), 5])
    assert made == recipe.spec([8, [], f32(6), 9])
    assert [t is None for t in recipe.types(made)] == [True, True, False, True]


def test_recipe_of_optional_tensors():
    """R2.8: what a graph asks for definedness is optional; absent, it is typed as undefined."""
    recipe = compile_recipe(program(TensorType(), TensorType(), asked=[1]))
    assert recipe.steps == (RecipeStep("tensor"), RecipeStep("optional"))
    x, b = recipe.types(recipe.spec([f32(2, 3), None]))
    assert b == TensorType(defined=False)
    assert x == TensorType(F32, (None, None), None, "cpu", False, True)
    _, b = recipe.types(recipe.spec([f32(2, 3), f32(3)]))
    assert b == TensorType(F32, (None,), None, "cpu", False, True)


def test_undefined_tensor_that_nobody_asks_for():
    """R2.7: definedness is part of the record of every tensor."""
    assert TENSORS.spec([None, f32(1)]).records[0] == UNDEFINED
    assert TENSORS.types(TENSORS.spec([None, f32(1)]))[0] == TensorType(defined=False)


def nested(depth: int) -> object:
    value: object = f32(2)
    for _ in range(depth):
        value = (value,)
    return value


@pytest.mark.parametrize("depth, what", [(NESTING_LIMIT, "tensor"), (NESTING_LIMIT + 1, "skip")])
def test_nesting_limit(depth, what):
    """R2.8: leaves nested deeper than 128 containers are not specialised."""

    def fn(tree):
        while isinstance(tree, tuple):
            (tree,) = tree
        return tree + 1

    made = trace(fn, (nested(depth),))
    assert made.depths() == [depth]
    assert compile_recipe(made.module.main, made.depths()).steps == (RecipeStep(what),)


def test_depths_of_leaves():
    """R2.8: how deep each leaf of a structure lies."""
    _, tree = flatten({"a": (f32(1), [f32(1)]), "b": 2.0, "c": None})
    assert tree.depths() == [2, 3, 1]


class PythonOp(Op):
    """An op of a user's, outside of the table."""

    foreign = True


def test_needs_gradient():
    """R2.13: not without gradient mode; for a foreign op at any depth; for an input that wants."""
    wants, wants_not = TensorType(F32, (None,), requires_grad=True), TensorType(F32, (None,))
    plain = Module(program(TensorType()))
    assert needs_gradient(plain, [wants])
    assert not needs_gradient(plain, [wants_not])
    assert not needs_gradient(plain, [None])

    foreign = program(TensorType(), BOOL_SCALAR)
    x, c = foreign.inputs
    inside = Block((), [Instr(PythonOp, (x,), (foreign.new_value(),))], ())
    foreign.body.instrs.append(Instr(op_named("scf.if"), (c,), (), {}, (inside, Block())))
    assert needs_gradient(Module(foreign), [wants_not])
    with gradients(False):
        assert not needs_gradient(plain, [wants])
        assert not needs_gradient(Module(foreign), [wants_not])
