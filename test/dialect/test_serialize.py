"""Modules as JSON data, which is what a cache holds of them."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from every_case import fewer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profuse.dialect.errors import IRError, Loc
from profuse.dialect.ir.attrs import VALUE
from profuse.dialect.ir.op import OPS
from profuse.dialect.ir.program import Instr, Module, Program
from profuse.dialect.ir.serialize import module_from_json, module_to_json
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.ops import seldom  # noqa: F401
from random_programs import _BY_KIND, LOCS, TYPES, modules

QUICK = settings(max_examples=fewer(100), deadline=None, suppress_health_check=list(HealthCheck))


def through_json(module: Module) -> Module:
    return module_from_json(json.loads(json.dumps(module_to_json(module), allow_nan=False)))


def assert_same(one: Module, two: Module) -> None:
    assert two.to_mlir() == one.to_mlir()
    assert list(two.functions) == list(one.functions)
    pairs = [(one.main, two.main), *((p, two.functions[n]) for n, p in one.functions.items())]
    for before, after in pairs:
        assert (after.name, after.types, after.count) == (before.name, before.types, before.count)
        for a, b in zip(before.body.walk(), after.body.walk(), strict=True):
            assert (a.op, a.operands, a.results, a.loc) == (b.op, b.operands, b.results, b.loc)
            for key, definition in a.op.attrs.items():
                old, new = a.attrs[key], b.attrs[key]
                if isinstance(old, np.generic):  # an array of rank 0, as it is to IR
                    old = np.asarray(old)
                assert type(new) is type(old)
                if definition.kind is VALUE and isinstance(old, np.ndarray):
                    assert (new.dtype, new.shape) == (old.dtype, old.shape)
                    assert new.tobytes() == old.tobytes()
                    assert new.flags.writeable
                else:
                    assert definition.kind.text(new) == definition.kind.text(old) if (old is not None) else new is None


@given(modules())
@QUICK
def test_reading_inverts_writing(module: Module):
    assert_same(module, through_json(module))


@given(modules())
@QUICK
def test_places_that_are_left_open_are_filled_in_by_the_reader(module: Module):
    programs = (module.main, *module.functions.values())
    locs = [i.loc for p in programs for i in p.body.walk() if i.loc is not None]
    places = list(dict.fromkeys(locs))[::2]
    data = module_to_json(module, places)
    assert_same(module, module_from_json(data, places))
    others = [Loc(f"other{k}.py", k + 1) for k in range(len(places))]
    moved = dict(zip(places, others, strict=True))
    found = module_from_json(data, others)
    new = [i.loc for p in (found.main, *found.functions.values()) for i in p.body.walk()]
    assert [loc for loc in new if loc is not None] == [moved.get(loc, loc) for loc in locs]


@pytest.mark.sampled(6, each=())
@pytest.mark.parametrize("name", sorted(OPS))
@given(st.data())
@settings(max_examples=5, deadline=None)
def test_every_op_with_all_its_attributes(name: str, data: st.DataObject):
    cls = OPS[name]
    program = Program("f")
    program.body.args = (program.new_value(data.draw(TYPES)),)
    attrs = {k: data.draw(_BY_KIND[a.kind]) for k, a in cls.attrs.items()}
    results = tuple(program.new_value(data.draw(TYPES)) for _ in cls.results)
    operands = program.body.args * len(cls.operands)
    program.body.instrs.append(Instr(cls, operands, results, attrs, (), data.draw(LOCS)))
    assert_same(Module(program), through_json(Module(program)))


TEXT = """
func.func @f(%x: tensor<4xf32>) -> tensor<f32> {
  %c = "profuse.constant"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %s = "profuse.sum"(%x) : (tensor<4xf32>) -> tensor<f32>
  %y = "profuse.mul"(%s, %c) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}"""


def decoded() -> Module:
    return decode_module(parse_module(TEXT, "graph.mlir"))


def test_what_was_decoded_from_ir():
    """Defaults are left out, as in IR, and come back."""
    data = module_to_json(decoded())
    assert data["programs"][0]["body"][1][1][3] == {}
    assert_same(decoded(), module_from_json(data))


def _edited(path: tuple, value: object) -> dict:
    data = copy.deepcopy(module_to_json(decoded()))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return data


INSTR = ("programs", 0, "body", 1, 0)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((*INSTR, 0), "os.system", "unknown op 'os.system'"),
        ((*INSTR, 1), [99], "has no value 99"),
        ((*INSTR, 1), [-1], "has no value -1"),
        ((*INSTR, 1), [True], "has no value True"),
        ((*INSTR, 3), {}, "needs attribute 'value'"),
        ((*INSTR, 3), {"evil": 1}, "has no attribute 'evil'"),
        ((*INSTR, 3), {"value": ["pickle", ""]}, "kind 'pickle'"),
        ((*INSTR, 3), {"value": ["array", "f32", [3], "AAAA"]}, "not a serialised module"),
        ((*INSTR, 3), {"value": ["float", "0"]}, "not a serialised module"),
        ((*INSTR, 5), [7, 1, 1], "not a serialised module"),
        ((*INSTR, 5), 0, "no place 0 among 0"),
        ((*INSTR, 5), -1, "no place -1"),
        (("types", 0), "tensor<4xobject>", "object"),
        (("programs",), [], "not a serialised module"),
        (("programs", 0), None, "not a serialised module"),
    ],
)
def test_other_data_are_refused(path, value, message):
    with pytest.raises(IRError, match=message):
        module_from_json(_edited(path, value))


def test_reading_imports_no_mlir():
    program = (
        "import json, sys\n"
        "from profuse.dialect.ops import seldom\n"
        "from profuse.dialect.ir.serialize import module_from_json\n"
        "print(module_from_json(json.load(sys.stdin)).to_mlir())\n"
        "assert 'mlir' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(module_to_json(decoded())), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == decoded().to_mlir().strip()
