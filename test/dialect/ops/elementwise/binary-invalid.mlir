// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @shapes(%x: tensor<4x3xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{'profuse.add' operands could not be broadcast together with shapes (4,3) (4,)}}
  %0 = "profuse.add"(%x, %y) : (tensor<4x3xf32>, tensor<4xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.add' must have 2 operands, not 1}}
  %1 = "profuse.add"(%x) : (tensor<4x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.add' result has type tensor<4xf32>, but its operands make it tensor<4x3xf32>}}
  %2 = "profuse.add"(%x, %x) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @dtypes(%b: tensor<2xi1>, %x: tensor<2xf32>, %l: !profuse.list) {
  // expected-error@+1 {{numpy boolean subtract}}
  %0 = "profuse.sub"(%b, %b) : (tensor<2xi1>, tensor<2xi1>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.bitwise_and'}}
  %1 = "profuse.bitwise_and"(%x, %b) : (tensor<2xf32>, tensor<2xi1>) -> !profuse.tensor
  // expected-error@+1 {{a list of tensors}}
  %2 = "profuse.mul"(%l, %b) : (!profuse.list, tensor<2xi1>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.div' result has type f64, but its operands make it tensor<2xf32>}}
  %3 = "profuse.div"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> f64
  return
}

// -----

func.func @select(%x: tensor<2xf32>) {
  // expected-error@+1 {{'profuse.select' must have 3 operands, not 2}}
  %0 = "profuse.select"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> !profuse.tensor
  return
}
