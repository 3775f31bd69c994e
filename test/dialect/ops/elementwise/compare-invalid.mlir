// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @compare(%x: tensor<4xf32>, %i: i64) {
  // expected-error@+1 {{'profuse.lt' result has type tensor<4xf32>, but its operands make it tensor<4xi1>}}
  %0 = "profuse.lt"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'profuse.eq' result has type i64, but its operands make it i1}}
  %1 = "profuse.eq"(%i, %i) : (i64, i64) -> i64
  return
}

// -----

func.func @bits(%x: tensor<4xf32>) {
  // expected-error@+1 {{'profuse.shift_left' ufunc 'left_shift' not supported for the input types}}
  %0 = "profuse.shift_left"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> !profuse.tensor
  // expected-error@+1 {{unknown op 'profuse.bitwise_nand'; did you mean 'profuse.bitwise_and'}}
  %1 = "profuse.bitwise_nand"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> !profuse.tensor
  return
}
