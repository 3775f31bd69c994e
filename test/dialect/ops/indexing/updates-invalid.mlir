// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @updates(%x: tensor<4x6xf32>, %v: tensor<3x6xf32>, %i: tensor<3xi64>, %f: tensor<3xf32>) {
  // expected-error@+1 {{'profuse.index_put' 2 axes for 1 indices}}
  %0 = "profuse.index_put"(%x, %v, %i) {axes = array<i64: 0, 1>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  // expected-error@+1 {{'profuse.index_maximum' arrays used as indices must be of integer (or boolean) type}}
  %1 = "profuse.index_maximum"(%x, %v, %f) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<3x6xf32>, tensor<3xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @written(%x: tensor<4x6xf32>, %v: tensor<2x6xf32>, %i: tensor<3xi64>) {
  %y = "profuse.exp"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // expected-error@+1 {{could not broadcast}}
  %0 = "profuse.index_put_"(%y, %v, %i) {axes = array<i64: 0>} : (tensor<4x6xf32>, tensor<2x6xf32>, tensor<3xi64>) -> tensor<4x6xf32>
  return
}
