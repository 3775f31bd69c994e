// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @operands(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.exp' must have 1 operand, not 2}}
  %0 = "profuse.exp"(%x, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  // expected-error@+1 {{'profuse.exp' must have 1 result, not 0}}
  "profuse.exp"(%x) : (!profuse.tensor) -> ()
  // expected-error@+1 {{'profuse.exp' has no attribute 'axes'}}
  %1 = "profuse.exp"(%x) {axes = array<i64: 1>} : (!profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @types(%x: tensor<4xf32>, %b: tensor<4xi1>, %l: !profuse.list, %v: vector<4xf32>) {
  // expected-error@+1 {{'profuse.exp' result has type tensor<5xf32>, but its operands make it tensor<4xf32>}}
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  // expected-error@+1 {{'profuse.exp' result has type tensor<4xf64>}}
  %1 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf64>
  // expected-error@+1 {{'profuse.exp' result has type tensor<1x4xf32>}}
  %2 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<1x4xf32>
  // expected-error@+1 {{'profuse.neg' The numpy boolean negative}}
  %3 = "profuse.neg"(%b) : (tensor<4xi1>) -> tensor<4xi1>
  // expected-error@+1 {{'profuse.exp' a list of tensors is no operand of an elementwise op}}
  %4 = "profuse.exp"(%l) : (!profuse.list) -> !profuse.tensor
  // expected-error@+1 {{'profuse.exp' type 'vector<4xf32>' is not a profuse type}}
  %5 = "profuse.exp"(%v) : (vector<4xf32>) -> !profuse.tensor
  return
}

// -----

func.func @cast(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.cast' needs attribute 'dtype' (dtype)}}
  %0 = "profuse.cast"(%x) : (!profuse.tensor) -> !profuse.tensor
  // expected-error@+1 {{attribute 'dtype' must be of kind dtype, not "f32"}}
  %1 = "profuse.cast"(%x) {dtype = "f32"} : (!profuse.tensor) -> !profuse.tensor
  // expected-error@+1 {{attribute 'dtype' cannot be read: element type 'i7' is not one profuse knows}}
  %2 = "profuse.cast"(%x) {dtype = i7} : (!profuse.tensor) -> !profuse.tensor
  return
}
