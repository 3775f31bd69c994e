// RUN: profuse-opt %s -p insert-casts --verify-diagnostics

func.func private @fusion_0(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{bitwise_and}}
  %0 = "profuse.bitwise_and"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @f(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.fusion_group"(%x, %y) {callee = @fusion_0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
