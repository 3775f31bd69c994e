"""Faults of the lowering for CPUs that no test needs to notice: the check of new kernels does.

Each is (name, file, old text, new text), as `mutations.Mutation`, and (file, old, new) of further
places. ``mutations.py --selfcheck``
applies one at a time and compiles `proof_corpus`, in which a check must fail.
"""

FAULTS = (
    (
        "the last element of a block of a sum is left out",
        "lowering/emit/reduction_loops.py",
        "end = self.ops.add(low, nest.size(self.block))",
        "end = self.ops.add(low, nest.size(self.block - 1))",
    ),
    (
        "sums of blocks begin with 1",
        "lowering/emit/reduction_loops.py",
        "return self.ops.float_constant(-0.0, carried.tensor.element)",
        "return self.ops.float_constant(1.0, carried.tensor.element)",
    ),
    (
        "the last column of a tile is left out",
        "lowering/emit/nest.py",
        "end = self.ops.add(start, self.size(self.nest.width))",
        "end = self.ops.add(start, self.size(self.nest.width - 1))",
    ),
    (
        "accumulators in memory are not initialised",
        "lowering/emit/memory_reductions.py",
        "        if fresh:\n",
        "        if False:\n",
    ),
    (
        "loops end an iteration early",
        "lowering/emit/nest.py",
        "return (self.size(0), self.size(loop.extent)) if bounds is None else bounds",
        "return (self.size(0), self.size(loop.extent - 1)) if bounds is None else bounds",
    ),
    (
        "chunks share the accumulators of the first one",
        "lowering/emit/chunk_calls.py",
        "step_by = ops.mul(number, sizes.value(ix.product(owner.dims), _here()))",
        "step_by = ops.mul(ops.constant(0), sizes.value(ix.product(owner.dims), _here()))",
    ),
    (
        "accumulators of the second chunk are not merged",
        "lowering/emit/chunk_calls.py",
        "self._loop(one, chunks,",
        "self._loop(ops.constant(2), chunks,",
    ),
    (
        "rows of a product's chunk are those of the first chunk",
        "lowering/emit/cblas.py",
        "start = ops.offset(start, ops.mul(low, self.size(a.rows)), op.left.element)",
        "start = ops.offset(start, ops.constant(0), op.left.element)",
    ),
    (
        "weights take the place of scores that are read later",
        "lowering/schedule/blocks.py",
        "if op is not writer or group.index_of(op, access.index)[-1] != column:",
        "if False:",
    ),
    (
        "rows of small matrices are those of the first row",
        "lowering/emit/small_products.py",
        "self._load(self._at(source.pointer, ops.constant(k), source.rows))",
        "self._load(self._at(source.pointer, ops.constant(0), source.rows))",
    ),
    (
        "all blocks are of the first matrix",
        "lowering/emit/row_blocks.py",
        "matrix = ops.digit(block, per_matrix, rest=False)",
        "matrix = ops.constant(0)",
    ),
    (
        "an exponential that overflows is fused with a sum",
        "lowering/math/exp.py",
        "return k.exact_mul(k.mul(y, first), second)",
        "return k.mul(k.mul(y, first), second)",
    ),
    (
        "a narrowing loop of few iterations ends in a masked store",
        "lowering/libllvm.py",
        "if len(lanes) == 1:",
        "if False:",
    ),
    (
        "workspace is used again while it is read",
        "dialect/analysis/regions.py",
        "free = [region for region in regions if region.last < tenant.first]",
        "free = [region for region in regions if region.last <= tenant.first]",
    ),
    (
        "workspace is as large as the first of what lies there",
        "dialect/analysis/regions.py",
        "        if not self.fits(need):\n",
        "        if not self.sizes:\n",
    ),
    (
        "workspace of a size that is known is too small",
        "dialect/analysis/regions.py",
        "    return sym_max(size, other) == size\n",
        "    return isinstance(size, int) or sym_max(size, other) == size\n",
    ),
    (
        "strides are taken for those of contiguous memory",
        "lowering/schedule/read.py",
        "strides = tuple(self._stride(number, k, text) for k, text in enumerate(shown))",
        "_ = [self._stride(number, k, text) for k, text in enumerate(shown)]",
    ),
    (
        "reinterpreted arguments are taken to be contiguous",
        "lowering/schedule/scheduling.py",
        "if isinstance(root.producer, Source) and not is_contiguous(root):",
        "if False:",
    ),
    (
        "batches of products lie closer than they do",
        "lowering/emit/cblas.py",
        "shifted(bases[2], op.output, _matrix_size(op)),",
        "shifted(bases[2], op.output, op.output.dims[-1]),",
    ),
    (
        "the leading dimension of a product's operand is its width",
        "lowering/emit/cblas.py",
        "            return _NO_TRANS, self._leading(m.rows, m.width)",
        "            return _NO_TRANS, self._leading(m.width, m.width)",
    ),
    (
        "a quotient of integers is not rounded down",
        "lowering/linalg/division.py",
        "        quotient = quotient - wrong.cast(n.dtype)\n",
        "",
    ),
    ("divisors of 0 reach the processor", "lowering/linalg/division.py", "        d = unsafe.select(1, d)\n", ""),
    (
        "e**x of infinity is a number",
        "lowering/math/exp.py",
        "return k.select(k.not_le(clamped, high), k.exact_add(clamped, inf), result)",
        "return result",
        ("lowering/math/exp.py", "clamped = k.clamp(x, zero, high + unit)", "clamped = k.clamp(x, zero, high)"),
    ),
    (
        "e**x is off in the seventh digit",
        "lowering/math/exp.py",
        "return k.add(k.fma(tail, k.mul(r, r), r), 1.0), bits",
        "return k.add(k.fma(tail, k.mul(r, r), r), 1.000004), bits",
    ),
    (
        "sizes are divided as if none were negative",
        "lowering/emit/loop_ops.py",
        """            if op == "%":
                return rest
            whole = self.create("arith.subi", self.word, a, rest)
            return self.create("arith.divsi", self.word, whole, divisor)
""",
        "            return self.digit(a, divisor, op == '%')\n",
        (
            "lowering/schedule/read.py",
            "        if without_remainders(one) != without_remainders(other):",
            "        if False:",
        ),
    ),
    ("indices out of range are read", "lowering/linalg/scalar.py", ".minimum(count - 1).maximum(zero)\n", "\n"),
    (
        "indices below the range are not reported",
        "dialect/ops/sizes.py",
        "return (index >= count) | (index < -count)",
        "return index >= count",
    ),
)

_GPU = "kernels of the CPU take no such way"
_LONGER = "values are the same, but take longer"
NOT_SHOWN = {
    "LLVM sees the constants of accumulated extrema": _LONGER,
    "constants are hidden where loops carry values alone": _LONGER,
    "zeros are fenced as such": _LONGER,
    "bounds are hidden from comparisons": _LONGER,
    "what is far below the range of exp underflows to 0": _LONGER,
    "negative sizes pass": "NumPy raises for such sizes, so that there is nothing to compare with",
    "loops may write less than the caller allocates": "sizes agree without this net; the faults of "
    "dividing sizes are tried with and without it",
    "sums of halves are rounded that somebody else reads": _GPU,
    "products are rounded to any half": _GPU,
    "products with a bias are gone for who else reads them": _GPU,
    "the library is given halves as a bias for floats": _GPU,
    "biases with gaps are read as if they had none": _GPU,
}
"""Mutations of CPU lowering that no check of a kernel can notice, each with the reason."""
