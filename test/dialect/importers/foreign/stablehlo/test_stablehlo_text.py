"""StableHLO text in generic form as functions: attributes, values, loops, sizes, refusals; without jax."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ArgumentError, DTypeError, IRError, ShapeError, TraceError
from profuse.dialect.importers.foreign.stablehlo.stablehlo_reader import read_stablehlo

RNG = np.random.default_rng(0)


def module(types: str, body: str, results: str) -> str:
    """A module of one function: ``types`` of %a, %b …, ops, and the type of its result %r."""
    names = "abcdef"
    arguments = ", ".join(f"%{name}: {t}" for name, t in zip(names, types.split("; "), strict=False))
    signature = f"({types.replace(';', ',')}) -> {results}"
    return (
        '"builtin.module"() <{sym_name = "m"}> ({\n'
        f'  "func.func"() <{{function_type = {signature}, sym_name = "main"}}> ({{\n  ^bb0({arguments}):\n'
        f'    {body}\n    "func.return"(%r) : ({results}) -> ()\n  }}) : () -> ()\n}}) : () -> ()\n'
    )


def loaded(tmp_path, text: str):
    path = tmp_path / "model.anything"  # what a file is, is told by its content
    path.write_text(text, encoding="utf-8")
    return pf.load(path, background=False)


def check(tmp_path, text: str, wanted, *args, calls: int = 3):
    function = loaded(tmp_path, text)
    for _ in range(calls):
        found = function(*args)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)
    state = function.state()
    assert state.tier == "optimized" and state.counters["kernel_launches"] == calls - 1
    return function


def region(op: str) -> str:
    return (
        f'({{\n    ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n      %z = "stablehlo.{op}"(%x, %y) : '
        '(tensor<f32>, tensor<f32>) -> tensor<f32>\n      "stablehlo.return"(%z) : (tensor<f32>) -> ()\n    })'
    )


F = "tensor<f32>"


def test_a_product_with_constants_of_all_kinds(tmp_path):
    text = module(
        "tensor<4x3xf32>",
        '%c = "stablehlo.constant"() <{value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}> : () -> tensor<3xf32>\n'
        '%s = "stablehlo.constant"() <{value = dense<2.0> : tensor<4x3xf32>}> : () -> tensor<4x3xf32>\n'
        '%m = "stablehlo.multiply"(%a, %s) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>\n'
        '%r = "stablehlo.dot_general"(%m, %c) <{dot_dimension_numbers = #stablehlo.dot<'
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : "
        "(tensor<4x3xf32>, tensor<3xf32>) -> tensor<4xf32>",
        "tensor<4xf32>",
    )
    x = RNG.standard_normal((4, 3)).astype(np.float32)
    function = check(tmp_path, text, x * 2 @ np.array([1, 2, 3], np.float32), x)
    assert function.state().counters["kernel_launches"] == 2
    assert "model.anything:" in function.explain()


@pytest.mark.parametrize(
    ("op", "init", "wanted"),
    [
        ("add", "0.0", lambda x: x.sum(1)),
        ("add", "1.5", lambda x: x.sum(1) + np.float32(1.5)),
        ("maximum", "0xFF800000", lambda x: x.max(1)),
        ("maximum", "0.25", lambda x: np.maximum(x.max(1), np.float32(0.25))),
        ("subtract", "0.0", lambda x: -x.sum(1)),
    ],
)
def test_reductions(tmp_path, op, init, wanted):
    """Known regions are reductions of ours, and another one is combined in order."""
    text = module(
        "tensor<3x4xf32>",
        f'%i = "stablehlo.constant"() <{{value = dense<{init}> : {F}}}> : () -> {F}\n'
        f'%r = "stablehlo.reduce"(%a, %i) <{{dimensions = array<i64: 1>}}> {region(op)} : '
        f"(tensor<3x4xf32>, {F}) -> tensor<3xf32>",
        "tensor<3xf32>",
    )
    x = RNG.standard_normal((3, 4)).astype(np.float32)
    check(tmp_path, text, wanted(x), x)


def test_a_counting_loop_is_one(tmp_path):
    text = module(
        "tensor<3xf32>",
        '%z = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>\n'
        '%n = "stablehlo.constant"() <{value = dense<40> : tensor<i32>}> : () -> tensor<i32>\n'
        '%one = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>\n'
        '%h = "stablehlo.constant"() <{value = dense<0.5> : tensor<3xf32>}> : () -> tensor<3xf32>\n'
        '%k, %r = "stablehlo.while"(%z, %a) ({\n^bb0(%i: tensor<i32>, %x: tensor<3xf32>):\n'
        '%t = "stablehlo.compare"(%i, %n) <{comparison_direction = #stablehlo<comparison_direction LT>}> : '
        '(tensor<i32>, tensor<i32>) -> tensor<i1>\n"stablehlo.return"(%t) : (tensor<i1>) -> ()\n}, {\n'
        '^bb0(%i: tensor<i32>, %x: tensor<3xf32>):\n'
        '%y = "stablehlo.multiply"(%x, %h) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>\n'
        '%w = "stablehlo.add"(%y, %h) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>\n'
        '%j = "stablehlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n'
        '"stablehlo.return"(%j, %w) : (tensor<i32>, tensor<3xf32>) -> ()\n}) : '
        "(tensor<i32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>)",
        "tensor<3xf32>",
    )  # fmt: skip
    x = np.array([3, -1, 0.5], np.float32)
    wanted = x
    for _ in range(40):
        wanted = wanted * np.float32(0.5) + np.float32(0.5)
    function = check(tmp_path, text, wanted, x)
    assert "scf.for" in function.ir("graph") and "scf.while" not in function.ir("graph")


def test_sizes_stay_sizes(tmp_path):
    """What is computed of sizes alone is no array, so one graph serves all of them."""
    text = module(
        "tensor<?x3xf32>",
        '%n = "stablehlo.get_dimension_size"(%a) <{dimension = 0 : i64}> : (tensor<?x3xf32>) -> tensor<i32>\n'
        '%three = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>\n'
        '%m = "stablehlo.multiply"(%n, %three) : (tensor<i32>, tensor<i32>) -> tensor<i32>\n'
        '%v = "stablehlo.reshape"(%m) : (tensor<i32>) -> tensor<1xi32>\n'
        '%r = "stablehlo.dynamic_reshape"(%a, %v) : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>',
        "tensor<?xf32>",
    )
    function = loaded(tmp_path, text)
    for rows in (2, 5, 3, 7):
        x = RNG.standard_normal((rows, 3)).astype(np.float32)
        np.testing.assert_array_equal(function(x), x.reshape(-1))
    assert function.state().counters["traces"] == 1


def test_gather_and_scatter(tmp_path):
    """Starts outside are moved inside by the one, and updates outside are left out by the other."""
    text = module(
        "tensor<5x2xf32>; tensor<3x1xi32>",
        '%r = "stablehlo.gather"(%a, %b) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : "
        "(tensor<5x2xf32>, tensor<3x1xi32>) -> tensor<3x2xf32>",
        "tensor<3x2xf32>",
    )
    x, ids = RNG.standard_normal((5, 2)).astype(np.float32), np.array([[4], [-1], [9]], np.int32)
    check(tmp_path, text, x[[4, 0, 4]], x, ids)
    text = module(
        "tensor<5x2xf32>; tensor<3x1xi32>; tensor<3x2xf32>",
        '%r = "stablehlo.scatter"(%a, %b, %c) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = '
        "[1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> "
        f"{region('add')} : (tensor<5x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<5x2xf32>",
        "tensor<5x2xf32>",
    )
    updates = RNG.standard_normal((3, 2)).astype(np.float32)
    wanted = x.copy()
    wanted[4] += updates[0]
    check(tmp_path, text, wanted, x, ids, updates)


SCATTER = (
    '%r = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> {region} : '
    "({x}, {places}, {updates}) -> {x}"
)
REPLACED = f'({{\n    ^bb0(%x: {F}, %y: {F}):\n      "stablehlo.return"(%y) : ({F}) -> ()\n    }})'


@pytest.mark.parametrize("start", [-1, 0, 2, 3, 9])
@pytest.mark.parametrize("how", [REPLACED, region("add"), region("maximum")], ids=["set", "add", "maximum"])
def test_one_window_is_combined_in_or_left_out(tmp_path, start, how):
    """Of a scatter, a window that reaches outside changes nothing; a slice that is updated moves inside."""
    kinds = {"x": "tensor<5x3xf32>", "places": "tensor<1xi32>", "updates": "tensor<2x3xf32>"}
    numbers = "update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0], index_vector_dim = 0"
    text = module("; ".join(kinds.values()), SCATTER.format(numbers=numbers, region=how, **kinds), kinds["x"])
    x, updates = (RNG.standard_normal(shape).astype(np.float32) for shape in ((5, 3), (2, 3)))
    wanted = x.copy()
    if 0 <= start <= 3:
        part = wanted[start : start + 2]
        part[:] = updates if how is REPLACED else part + updates if "add" in how else np.maximum(part, updates)
    check(tmp_path, text, wanted, x, np.array([start], np.int32), updates)
    text = module(
        f"{kinds['x']}; tensor<i32>; {kinds['updates']}",
        '%z = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>\n'
        f'%r = "stablehlo.dynamic_update_slice"(%a, %c, %b, %z) : ({kinds["x"]}, {kinds["updates"]}, tensor<i32>, '
        f"tensor<i32>) -> {kinds['x']}",
        kinds["x"],
    )
    wanted, first = x.copy(), min(max(start, 0), 3)
    wanted[first : first + 2] = updates
    check(tmp_path, text, wanted, x, np.array(start, np.int32), updates)


def test_zeros_keep_their_sign_where_nothing_is_added(tmp_path):
    kinds = {"x": "tensor<4xf32>", "places": "tensor<2x1xi32>", "updates": "tensor<2xf32>"}
    numbers = "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1"
    text = module("; ".join(kinds.values()), SCATTER.format(numbers=numbers, region=region("add"), **kinds), kinds["x"])
    x = np.full(4, -0.0, np.float32)
    function = loaded(tmp_path, text)
    for _ in range(2):
        result = function(x, np.array([[-1], [4]], np.int32), np.ones(2, np.float32))
        assert np.signbit(result).all()


def test_rows_that_rounds_replace_stay_where_they_are(tmp_path):
    """A loop that writes a row of an array, and adds to others at places of an array, is one kernel without copies."""
    x, i, places = "tensor<64x8xf32>", "tensor<i32>", "tensor<3x1xi32>"
    numbers = "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]"
    text = module(
        f"{x}; {places}",
        f'%zero = "stablehlo.constant"() <{{value = dense<0> : {i}}}> : () -> {i}\n'
        f'%n = "stablehlo.constant"() <{{value = dense<40> : {i}}}> : () -> {i}\n'
        f'%one = "stablehlo.constant"() <{{value = dense<1> : {i}}}> : () -> {i}\n'
        f'%k, %r = "stablehlo.while"(%zero, %a) ({{\n^bb0(%i: {i}, %old: {x}):\n'
        f'%t = "stablehlo.compare"(%i, %n) <{{comparison_direction = #stablehlo<comparison_direction LT>}}> : '
        f'({i}, {i}) -> tensor<i1>\n"stablehlo.return"(%t) : (tensor<i1>) -> ()\n}}, {{\n^bb0(%i: {i}, %old: {x}):\n'
        f'%p = "stablehlo.dynamic_slice"(%old, %i, %zero) <{{slice_sizes = array<i64: 1, 8>}}> : ({x}, {i}, {i}) -> '
        f'tensor<1x8xf32>\n%q = "stablehlo.tanh"(%p) : (tensor<1x8xf32>) -> tensor<1x8xf32>\n'
        f'%j = "stablehlo.add"(%i, %one) : ({i}, {i}) -> {i}\n'
        f'%new = "stablehlo.dynamic_update_slice"(%old, %q, %j, %zero) : ({x}, tensor<1x8xf32>, {i}, {i}) -> {x}\n'
        '%u = "stablehlo.broadcast_in_dim"(%q) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x8xf32>) -> '
        f'tensor<3x8xf32>\n%w = "stablehlo.scatter"(%new, %b, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<'
        f'{numbers}, index_vector_dim = 1>}}> {region("add")} : ({x}, {places}, tensor<3x8xf32>) -> {x}\n'
        f'"stablehlo.return"(%j, %w) : ({i}, {x}) -> ()\n}}) : ({i}, {x}) -> ({i}, {x})',
        x,
    )  # fmt: skip
    a, where = RNG.standard_normal((64, 8)).astype(np.float32), np.array([[60], [63], [60]], np.int32)
    wanted = a.copy()
    for k in range(40):
        row = np.tanh(wanted[k])
        wanted[k + 1] = row
        np.add.at(wanted, where[:, 0], row)
    function = check(tmp_path, text, wanted, a, where)
    before, rounds = function.ir("loops").split("to %c40")
    assert "to %c64" in before and "to %c64" not in rounds


def test_conversions_and_bits(tmp_path):
    text = module("tensor<5xf32>", '%r = "stablehlo.convert"(%a) : (tensor<5xf32>) -> tensor<5xi32>', "tensor<5xi32>")
    x = np.array([1.9, -1.9, 1e20, -1e20, np.nan], np.float32)
    check(tmp_path, text, np.array([1, -1, 2**31 - 1, -(2**31), 0], np.int32), x)
    text = module(
        "tensor<5xf32>", '%r = "stablehlo.bitcast_convert"(%a) : (tensor<5xf32>) -> tensor<5xui32>', "tensor<5xui32>"
    )
    check(tmp_path, text, x.view(np.uint32), x)


def test_arguments_are_checked(tmp_path):
    text = module(
        "tensor<?x3xf32>", '%r = "stablehlo.tanh"(%a) : (tensor<?x3xf32>) -> tensor<?x3xf32>', "tensor<?x3xf32>"
    )
    function = loaded(tmp_path, text)
    with pytest.raises(DTypeError, match="arg0 has dtype float64, and the model takes float32"):
        function(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"arg0 has shape \(\d, 4\), and the model takes \(.*3\)"):
        function(np.ones((2, 4), np.float32))
    with pytest.raises(ShapeError, match="arg0 has 1 axes, and the model takes 2"):
        function(np.ones(3, np.float32))
    with pytest.raises(ArgumentError, match="arg0 is of type float"):
        function(2.0)
    assert function(np.zeros((1, 3), np.float32)).shape == (1, 3)


@pytest.mark.parametrize(
    ("text", "error", "what"),
    [
        ('"builtin.module"() ({"stablehlo.x"() : () -> ()}) : () -> ()', IRError, "has 0 functions"),
        ("stablehlo. what is this", IRError, "model.mlir:1"),
        (
            module("tensor<2xf32>", '%r = "stablehlo.after_all"() : () -> !stablehlo.token', "!stablehlo.token"),
            DTypeError,
            "values of type !stablehlo.token are not supported",
        ),
        (
            module("tensor<2xi4>", '%r = "stablehlo.abs"(%a) : (tensor<2xi4>) -> tensor<2xi4>', "tensor<2xi4>"),
            DTypeError,
            "element type 'i4'",
        ),
    ],
)
def test_what_is_no_module_of_arrays(tmp_path, text, error, what):
    with pytest.raises(error, match=what):
        read_stablehlo(text, "main", "model.mlir")


def test_what_is_not_supported_is_named_with_its_place(tmp_path):
    body = '%r = "stablehlo.all_reduce"(%a) : (tensor<3xi32>) -> tensor<3xi32>'
    with pytest.raises(TraceError, match=r"model.anything:\d+:\d+: .* not supported: stablehlo.all_reduce"):
        loaded(tmp_path, module("tensor<3xi32>", body, "tensor<3xi32>"))


def test_a_function_that_calls_itself_is_an_error():
    text = module(
        "tensor<3xf32>", '%r = "func.call"(%a) <{callee = @main}> : (tensor<3xf32>) -> tensor<3xf32>', "tensor<3xf32>"
    )
    with pytest.raises(IRError, match="calls itself"):
        read_stablehlo(text, "main", "model.mlir")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bits_are_counted(tmp_path, bits):
    kind, dtype = f"tensor<6xi{bits}>", np.dtype(f"i{bits // 8}")
    x = np.array([0, 1, -1, np.iinfo(dtype).max, np.iinfo(dtype).min, 37], dtype)
    texts = [np.binary_repr(int(n), bits) for n in x]
    counts = {"popcnt": [t.count("1") for t in texts], "count_leading_zeros": [f"{t}1".find("1") for t in texts]}
    for op, wanted in counts.items():
        text = module(kind, f'%r = "stablehlo.{op}"(%a) : ({kind}) -> {kind}', kind)
        check(tmp_path, text, np.array(wanted, dtype), x)


@pytest.mark.parametrize(("left", "lower", "transpose"), [(True, True, "NO_TRANSPOSE"), (False, False, "ADJOINT")])
def test_triangles_and_their_factors(tmp_path, left, lower, transpose):
    kind = "tensor<2x3x3xf32>"
    a = RNG.standard_normal((2, 3, 3)).astype(np.float32)
    a = a @ np.swapaxes(a, 1, 2) + 2 * np.eye(3, dtype=np.float32)
    said = "true" if lower else "false"
    factor = np.linalg.cholesky(a)
    factor = factor if lower else np.swapaxes(factor, 1, 2)
    text = module(kind, f'%r = "stablehlo.cholesky"(%a) <{{lower = {said}}}> : ({kind}) -> {kind}', kind)
    function = loaded(tmp_path, text)
    for _ in range(3):
        np.testing.assert_allclose(function(a), factor, rtol=2e-5, atol=1e-6)
    state = function.state()
    assert state.tier == "optimized" and not state.counters.get("python_calls", 0)
    side, b = "true" if left else "false", RNG.standard_normal((2, 3, 3)).astype(np.float32)
    text = module(
        f"{kind}; {kind}",
        f'%r = "stablehlo.triangular_solve"(%a, %b) <{{left_side = {side}, lower = {said}, unit_diagonal = false, '
        f"transpose_a = #stablehlo<transpose {transpose}>}}> : ({kind}, {kind}) -> {kind}",
        kind,
    )
    function, turned = loaded(tmp_path, text), factor if transpose == "NO_TRANSPOSE" else np.swapaxes(factor, 1, 2)
    for _ in range(3):
        x = function(factor, b)
    np.testing.assert_allclose(turned @ x if left else x @ turned, b, rtol=1e-4, atol=1e-4)


def test_a_matrix_that_is_not_positive_is_an_error(tmp_path):
    kind = "tensor<2x2xf32>"
    text = module(kind, f'%r = "stablehlo.cholesky"(%a) <{{lower = true}}> : ({kind}) -> {kind}', kind)
    function = loaded(tmp_path, text)
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError):
            function(-np.eye(2, dtype=np.float32))


def test_constants_that_are_no_numbers_are_written_as_bits(tmp_path):
    text = module(
        "tensor<2xcomplex<f32>>",
        '%c = "stablehlo.constant"() <{value = dense<[(0x7FC00000,1.5), (0xFF800000,-2.0)]> : tensor<2xcomplex<f32>>}> '
        ': () -> tensor<2xcomplex<f32>>\n%r = "stablehlo.add"(%a, %c) : (tensor<2xcomplex<f32>>, '
        "tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>",
        "tensor<2xcomplex<f32>>",
    )
    y = loaded(tmp_path, text)(np.zeros(2, np.complex64))
    assert np.isnan(y[0].real) and y[0].imag == 1.5 and y[1] == complex(-np.inf, -2.0)
