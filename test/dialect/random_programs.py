"""Random programs, for properties of printing and reading IR."""

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import strategies as st
from profuse.dialect.errors import Loc
from profuse.dialect.ir import attrs as kinds
from profuse.dialect.ir.dtypes import DTYPES
from profuse.dialect.ir.op import OPS
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import ListType, ScalarType, TensorType
from profuse.dialect.ops import seldom  # noqa: F401
from profuse.dialect.ops.custom_rules import RuleKey
from profuse.dialect.ops.gradient_ops import RULE

_INT64 = st.integers(-(2**63), 2**63 - 1)
_NAMES = st.text("abcxyz_0", min_size=1, max_size=6).filter(lambda s: not s[0].isdigit())
_SIZES = st.one_of(
    st.integers(0, 2**40),
    st.none(),
    st.sampled_from(["s0", "s1"]).map(symbol),
    st.integers(1, 9).map(lambda k: symbol("s0") * 4 + k),
)


@st.composite
def tensor_types(draw: st.DrawFn) -> TensorType:
    """Any tensor type that IR can spell."""
    dtype = draw(st.none() | st.sampled_from(DTYPES))
    if dtype is None or draw(st.booleans()):
        return TensorType(dtype)
    shape = tuple(draw(st.lists(_SIZES, max_size=4)))
    some = tuple(None if k % 2 else k for k in range(len(shape)))
    return TensorType(
        dtype,
        shape,
        draw(st.sampled_from([None, "contiguous", some])),
        draw(st.sampled_from([None, "cpu", "cuda:0"])),
        draw(st.sampled_from([None, True, False])),
        draw(st.sampled_from([None, True, False])),
    )


SCALARS = [ScalarType(d) for d in DTYPES if d.name in ("bool", "i64", "f64", "c128")]
TYPES = st.one_of(tensor_types(), st.sampled_from([*SCALARS, ListType()]))
_SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
_ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda d: hnp.arrays(np.uint8, _SHAPES, fill=st.nothing()).map(lambda a: _bits(a, d))
)


def _bits(array: np.ndarray, dtype) -> np.ndarray:
    """An array of that dtype with bit patterns made from bytes; NaN patterns included."""
    if dtype.kind == "b":
        return array % 2 == 1
    raw = np.repeat(array[..., None], dtype.itemsize, axis=-1) * np.uint8(37)
    return np.ascontiguousarray(raw).view(dtype.numpy)[..., 0]


_BY_KIND = {
    kinds.I64: _INT64,
    kinds.BOOL: st.booleans(),
    kinds.F64: st.floats(),
    kinds.STR: st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    kinds.I64_ARRAY: st.lists(_INT64, max_size=4).map(tuple),
    kinds.I64_ARRAYS: st.lists(st.lists(_INT64, max_size=4).map(tuple), max_size=3).map(tuple),
    kinds.BOOL_ARRAY: st.lists(st.booleans(), max_size=4).map(tuple),
    kinds.SYMBOL: _NAMES,
    kinds.DTYPE: st.sampled_from(DTYPES),
    kinds.TYPE: TYPES,
    kinds.TYPES: st.lists(TYPES, max_size=3).map(tuple),
    kinds.STR_ARRAY: st.lists(st.text('ab"\\\n é'), max_size=3).map(tuple),
    RULE: _INT64.map(RuleKey),
    kinds.VALUE: st.one_of(st.booleans(), _INT64, st.floats(), st.complex_numbers(), _ARRAYS),
}
LOCS = st.none() | st.builds(
    Loc, st.text('ab/é"\\.\n ', min_size=1).filter(lambda s: s != "-"), st.integers(1, 2**31 - 1), st.integers(0, 2**16)
)


def _counts(draw: st.DrawFn, fields) -> int:
    return sum(draw(st.integers(0, 3)) if f.variadic else 1 for f in fields)


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """A module whose ops have the right structure, and otherwise make no sense."""
    simple = sorted((c for c in OPS.values() if not c.regions), key=lambda c: c.full_name())
    functions = {}
    for name in draw(st.lists(_NAMES, min_size=1, max_size=3, unique=True)):
        program = Program(name)
        program.body.args = tuple(program.new_value(draw(TYPES)) for _ in range(2))
        _fill(draw, program, program.body, list(program.body.args), simple, depth=1)
        functions[name] = program
    main, *_ = functions
    return Module(functions.pop(main), functions)


def _fill(draw, program: Program, block: Block, values: list[int], simple, depth: int) -> None:
    for _ in range(draw(st.integers(0, 4))):
        if depth and draw(st.integers(0, 3)) == 0:
            block.instrs.append(_branch(draw, program, values, simple, depth))
        else:
            cls = draw(st.sampled_from(simple))
            operands = tuple(draw(st.sampled_from(values)) for _ in range(_counts(draw, cls.operands)))
            attrs = {k: draw(_BY_KIND[a.kind]) for k, a in cls.attrs.items()}
            results = tuple(program.new_value(draw(TYPES)) for _ in range(_counts(draw, cls.results)))
            block.instrs.append(Instr(cls, operands, results, attrs, (), draw(LOCS)))
        values += block.instrs[-1].results
    if block is program.body:
        block.outputs = tuple(draw(st.lists(st.sampled_from(values), max_size=2)))


def _branch(draw, program: Program, values: list[int], simple, depth: int) -> Instr:
    """A ``while`` that passes one value on: both blocks take it and yield it."""
    carried = draw(st.sampled_from(values))
    type_ = program.type_of(carried)
    result = program.new_value(type_)
    blocks = []
    for is_body in (False, True):
        block = Block(args=(program.new_value(type_),))
        if is_body:
            _fill(draw, program, block, [*values, *block.args], simple, depth - 1)
            block.outputs = block.args
        else:
            flag = program.new_value(ScalarType(DTYPES[0]))
            block.instrs.append(Instr(OPS["profuse.lt"], (carried, carried), (flag,), {}, (), draw(LOCS)))
            block.outputs = (flag, *block.args)
        blocks.append(block)
    return Instr(OPS["scf.while"], (carried,), (result,), {}, tuple(blocks), draw(LOCS))
