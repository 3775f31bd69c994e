// RUN: profuse-opt %s --pass-pipeline=in-place-check --verify-diagnostics --split-input-file

func.func @argument(%x: tensor<3x4xf32>) {
  %row = "profuse.pick"(%x) {index = 1} : (tensor<3x4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{'profuse.exp_' may write memory of an argument, which the caller still sees}}
  %0 = "profuse.exp_"(%row) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @either(%x: tensor<3xf32>, %c: i1) -> tensor<3xf32> {
  %y = scf.if %c -> (tensor<3xf32>) {
    %0 = "profuse.copy"(%x) : (tensor<3xf32>) -> tensor<3xf32>
    scf.yield %0 : tensor<3xf32>
  } else {
    scf.yield %x : tensor<3xf32>
  }
  // expected-error@+1 {{'profuse.exp_' may write memory of an argument, which the caller still sees}}
  %2 = "profuse.exp_"(%y) : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

func.func @constant() {
  %0 = "profuse.constant"() {value = dense<1.0> : tensor<3xf32>} : () -> tensor<3xf32>
  // expected-error@+1 {{'profuse.exp_' may write a constant}}
  %1 = "profuse.exp_"(%0) : (tensor<3xf32>) -> tensor<3xf32>
  return
}
