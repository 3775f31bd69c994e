// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @what_fits(%x: tensor<3x4xi32>, %v: tensor<2x4xf32>, %w: tensor<4xf32>, %n: i64) {
  %y = "profuse.copy"(%x) : (tensor<3x4xi32>) -> tensor<3x4xi32>
  // expected-error@+1 {{'profuse.add_' Cannot cast ufunc output from dtype('float64') to dtype('int32') with casting rule 'same_kind'}}
  %0 = "profuse.add_"(%y, %w) : (tensor<3x4xi32>, tensor<4xf32>) -> tensor<3x4xi32>
  // expected-error@+1 {{'profuse.copy_' could not broadcast input array from shape (2,4) into shape (3,4)}}
  %1 = "profuse.copy_"(%y, %v) : (tensor<3x4xi32>, tensor<2x4xf32>) -> tensor<3x4xi32>
  // expected-error@+1 {{'profuse.put_' an element of a tensor of rank 2 is put}}
  %2 = "profuse.put_"(%y, %n) {index = 0} : (tensor<3x4xi32>, i64) -> tensor<3x4xi32>
  // expected-error@+1 {{'profuse.slice_scatter' elements of f32 cannot replace elements of i32}}
  %3 = "profuse.slice_scatter"(%x, %v) {starts = array<i64: 1>, stops = array<i64: 3>} : (tensor<3x4xi32>, tensor<2x4xf32>) -> tensor<3x4xi32>
  // expected-error@+1 {{'profuse.add_' only a tensor can be written in place, not i64}}
  %4 = "profuse.add_"(%n, %n) : (i64, i64) -> !profuse.tensor
  return
}

// -----

// R1.24, in-place check: the caller's memory and constants are not written, through views neither.
func.func @not_its_own(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.neg_' may write memory of an argument, which the caller still sees}}
  %0 = "profuse.neg_"(%x) : (!profuse.tensor) -> !profuse.tensor
  %v = "profuse.flip"(%x) : (!profuse.tensor) -> !profuse.tensor
  // expected-error@+1 {{'profuse.exp_' may write memory of an argument, which the caller still sees}}
  %1 = "profuse.exp_"(%v) : (!profuse.tensor) -> !profuse.tensor
  %c = "profuse.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> !profuse.tensor
  // expected-error@+1 {{'profuse.exp_' may write a constant}}
  %2 = "profuse.exp_"(%c) : (!profuse.tensor) -> !profuse.tensor
  return
}
