"""Programs and IR text are two forms of one thing."""

from every_case import fewer
from hypothesis import HealthCheck, given, settings
from profuse.dialect.ir.attrs import VALUE
from profuse.dialect.ir.program import Module
from profuse.dialect.ir.serialize import module_from_json, module_to_json
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from random_programs import modules

QUICK = settings(max_examples=fewer(150), deadline=None, suppress_health_check=list(HealthCheck))


@given(modules())
@QUICK
def test_decoding_inverts_printing(module: Module):
    text = module.to_mlir()
    decoded = decode_module(parse_module(text, verify=False))
    assert decoded.to_mlir() == text
    for name, program in {module.main.name: module.main, **module.functions}.items():
        other = decoded.main if name == module.main.name else decoded.functions[name]
        assert other.types == program.types
        for one, two in zip(program.body.walk(), other.body.walk(), strict=True):
            assert (one.op, one.operands, one.results) == (two.op, two.operands, two.results)
            assert one.loc == two.loc
            for key, definition in one.op.attrs.items():
                if definition.kind is not VALUE:
                    assert repr(one.attrs[key]) == repr(two.attrs[key])
                    assert type(one.attrs[key]) is type(two.attrs[key])


@given(modules())
@QUICK
def test_mlir_prints_what_it_read(module: Module):
    once = str(parse_module(module.to_mlir(), verify=False))
    assert str(parse_module(once, verify=False)) == once


def test_default_attributes_are_left_out_and_come_back():
    text = """
func.func @f(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = "profuse.sum"(%x) : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
    program = decode_module(parse_module(text))
    assert program.main.body.instrs[0].attrs["axes"] is None
    assert program.main.body.instrs[0].attrs["keepdims"] is False
    assert "axes" not in program.to_mlir()


def test_what_equals_a_default_but_is_another_value_is_kept():
    text = """
func.func @f(%x: tensor<4xf32>) -> tensor<f32> {
  %0 = "profuse.var"(%x) {ddof = -0.0 : f64} : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
    program = decode_module(parse_module(text))
    for again in (decode_module(parse_module(program.to_mlir())), module_from_json(module_to_json(program))):
        assert repr(again.main.body.instrs[0].attrs["ddof"]) == "-0.0"
    definition = program.main.body.instrs[0].op.attrs["ddof"]
    assert definition.is_default(0.0)
    assert not any(map(definition.is_default, (-0.0, 0, False, float("nan"))))


def test_locations_become_the_first_file_position():
    text = """
func.func @f(%x: !profuse.tensor) {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor loc("a.py":1:2)
  %1 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor loc("name"("b.py":3:4))
  %2 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    loc(fused[unknown, "c.py":5:6, "d.py":7:8])
  %3 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    loc(callsite("e.py":9:1 at "f.py":2:3))
  %4 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor loc(unknown)
  %5 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  return
}"""

    def locations(filename: str) -> list[str]:
        program = decode_module(parse_module(text, filename)).main
        return [str(instr.loc) for instr in program.body.instrs]

    given_by_hand = ["a.py:1:2", "b.py:3:4", "c.py:5:6", "e.py:9:1", "None"]
    assert locations("g.mlir") == [*given_by_hand, "g.mlir:10:8"]
    # A text without a name has no positions that mean anything to a user.
    assert locations("-") == [*given_by_hand, "None"]
