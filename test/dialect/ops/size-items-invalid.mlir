// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @a_tensor(%x: !profuse.tensor) -> i64 {
  // expected-error@+1 {{operand 0 must be of type !profuse.ints, not !profuse.tensor}}
  %0 = "profuse.dim_of"(%x) {axis = 0 : i64} : (!profuse.tensor) -> i64
  return %0 : i64
}

// -----

func.func @no_axis(%s: !profuse.ints) -> i64 {
  // expected-error@+1 {{needs attribute 'axis'}}
  %0 = "profuse.dim_of"(%s) : (!profuse.ints) -> i64
  return %0 : i64
}

// -----

func.func @no_dtype() -> i64 {
  // expected-error@+1 {{needs attribute 'dtype'}}
  %0 = "profuse.dtype_constant"() : () -> i64
  return %0 : i64
}

// -----

func.func @tensors(%x: !profuse.tensor) -> !profuse.ints {
  // expected-error@+2 {{operand 1 must be of type !profuse.ints}}
  %s = "profuse.sizes"(%x) : (!profuse.tensor) -> !profuse.ints
  %0 = "profuse.matmul_sizes"(%s, %x) : (!profuse.ints, !profuse.tensor) -> !profuse.ints
  return %0 : !profuse.ints
}
