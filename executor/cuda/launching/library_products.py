"""Library products of a launch plan as calls of cuBLAS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ....dialect.dataclass import dataclass
from ....lowering.gpu.launch_plan import LibraryProduct, Matrix
from ..nvidia.driver_api import Driver, DriverError
from ..nvidia.gemm import ITEMSIZE, Gemm

Size = Callable[[str], int]
Pointer = Callable[[tuple], int]


@dataclass(frozen=True)
class _BatchOperand:
    """A batch of matrices: (batch, rows, columns), their strides in elements, and the address."""

    dims: tuple[int, int, int]
    strides: tuple[int, int, int]
    pointer: int

    def layout(self, what: str) -> tuple[bool, int]:
        """True if the matrix is stored column by column, and the elements between columns or rows.

        Read column by column, a matrix that is stored row by row is its own transpose. Raises
        DriverError if neither axis is without gaps; ``what`` names the operand in the message.
        """
        _, rows, columns = self.dims
        _, down, right = self.strides
        if 0 in (rows, columns):
            return False, max(columns, 1)
        if (right == 1 or columns <= 1) and (down >= max(columns, 1) or rows <= 1):
            return False, max(down, columns, 1)
        if (down == 1 or rows <= 1) and (right >= max(rows, 1) or columns <= 1):
            return True, max(right, rows, 1)
        raise DriverError(
            f"the {what} operand of a product has strides {self.strides[1:]}, no axis without gaps", "layout"
        )


def gemm_of(product: LibraryProduct, size: Size, pointer: Pointer) -> Gemm | None:
    """The call for a product; None if the result has no element.

    Args:
        product: the product.
        size: text of a size expression -> its value.
        pointer: argument -> its address.

    Raises DriverError for dtypes and layouts that cuBLAS does not take.
    """
    if product.dtype not in ITEMSIZE:
        raise DriverError(f"there is no library product of {product.dtype}", "dtype")
    vector_left = product.kind in ("vecmat", "dot")
    vector_right = product.kind in ("matvec", "dot")
    left = _operand(product.left, product.dtype, size, pointer, row=vector_left)
    right = _operand(product.right, product.dtype, size, pointer, column=vector_right)
    output = _operand(product.output, product.output_dtype, size, pointer, row=vector_left, column=vector_right)
    batch, rows, columns = output.dims
    if 0 in output.dims:
        return None
    # cuBLAS reads matrices column by column, so it computes the transpose: c' = b' a'.
    left_swapped, left_step = left.layout("left")
    right_swapped, right_step = right.layout("right")
    swapped, step = output.layout("output")
    if swapped:
        raise DriverError("the output of a product is not contiguous", "layout")
    return Gemm(
        product.dtype,
        product.output_dtype,
        right_swapped,
        left_swapped,
        columns,
        rows,
        left.dims[2],
        right.pointer,
        right_step,
        left.pointer,
        left_step,
        output.pointer,
        step,
        1.0 if product.accumulate else 0.0,
        right.strides[0],
        left.strides[0],
        output.strides[0],
        batch,
        _start(product.bias, product.output_dtype, size, pointer) if product.bias else 0,
    )


@dataclass(frozen=True)
class SizedProduct:
    """A library product of certain sizes.

    Attributes:
        gemm: the product, with byte offsets into the operands in place of pointers.
        operands: a, b, c and the bias if there is one, in the form of kernel arguments.
    """

    gemm: Gemm
    operands: tuple[tuple, ...]

    def at(self, a: int, b: int, c: int, bias: int = 0) -> Gemm:
        """The product of the operands at these addresses."""
        gemm = self.gemm
        return replace(gemm, a=gemm.a + a, b=gemm.b + b, c=gemm.c + c, bias=gemm.bias + bias)


def sized_product(product: LibraryProduct, size: Size) -> SizedProduct | None:
    """A product of these sizes; None if the result has no element. Raises as `gemm_of`."""
    gemm = gemm_of(product, size, lambda argument: _offset(argument, size))
    return None if gemm is None else SizedProduct(gemm, product.operands)


def _offset(argument: tuple, size: Size) -> int:
    return size(argument[1]) if argument[0] == "workspace" else 0


def spread_bias(driver: Driver, device: int, product: Gemm, stream: int) -> Gemm:
    """Fill the output of a product with its bias; returns the product that adds itself to that.

    The sum is bit for bit the same. It costs one more pass over the output, by copies within the
    device, so that no kernel is needed.
    """
    row = product.m * ITEMSIZE[product.output]
    whole = row * product.n * product.batch
    driver.copy(device, product.c, product.bias, row, stream)
    filled = row
    while filled < whole:
        more = min(filled, whole - filled)
        driver.copy(device, product.c + filled, product.c, more, stream)
        filled += more
    return replace(product, bias=0, beta=1.0)


def _operand(
    matrix: Matrix, dtype: str, size: Size, pointer: Pointer, *, row: bool = False, column: bool = False
) -> _BatchOperand:
    """A matrix with its missing axes: a vector is one row, or one column, of a batch of one."""
    dims, strides = [size(d) for d in matrix.dims], [size(s) for s in matrix.strides]
    if column:
        dims.append(1)
        strides.append(1)
    if row:
        dims.insert(len(dims) - 1, 1)
        strides.insert(len(strides) - 1, max(dims[-1], 1))
    while len(dims) < 3:
        dims.insert(0, 1)
        strides.insert(0, 0)
    return _BatchOperand(
        (dims[0], dims[1], dims[2]), (strides[0], strides[1], strides[2]), _start(matrix, dtype, size, pointer)
    )


def _start(matrix: Matrix, dtype: str, size: Size, pointer: Pointer) -> int:
    return pointer(matrix.argument) + size(matrix.offset) * ITEMSIZE[dtype]
