"""The description of a matrix product that cuBLAS computes."""

from __future__ import annotations

from ....dialect.dataclass import dataclass

ITEMSIZE = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}


@dataclass(frozen=True)
class Gemm:
    """``c = op(a) @ op(b) + bias + beta * c`` for matrices that are stored column by column.

    Attributes:
        dtype: of the elements of a and b; halves are summed up in f32.
        output: dtype of the elements of c.
        trans_a, trans_b: whether an operand is stored transposed.
        m, n, k: c is m by n, and k products make up each of its elements.
        a, b, c: pointers.
        lda, ldb, ldc: elements from one column to the next.
        stride_a, stride_b, stride_c: elements from one matrix of the batch to the next.
        batch: number of matrices.
        bias: pointer to m elements, of dtype ``output``, that are added to every column of c; 0 =
            none. With one, beta is 0, and c has no gaps.
    """

    dtype: str
    output: str
    trans_a: bool
    trans_b: bool
    m: int
    n: int
    k: int
    a: int
    lda: int
    b: int
    ldb: int
    c: int
    ldc: int
    beta: float = 0.0
    stride_a: int = 0
    stride_b: int = 0
    stride_c: int = 0
    batch: int = 1
    bias: int = 0

    @property
    def shape(self) -> tuple:
        """All fields except the pointers and beta."""
        return (
            self.dtype,
            self.output,
            self.trans_a,
            self.trans_b,
            self.m,
            self.n,
            self.k,
            self.lda,
            self.ldb,
            self.ldc,
            self.stride_a,
            self.stride_b,
            self.stride_c,
            self.batch,
        )
