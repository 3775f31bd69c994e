// RUN: profuse-opt %s -p propagate-requires-grad --verify-each | FileCheck %s

// R2.10: a floating-point result requires gradients if an operand does; comparisons never do.
// CHECK-LABEL: func.func @mixed(
// CHECK:         "profuse.mul"{{.*}} -> tensor<?xf32, {requires_grad = true}>
// CHECK:         "profuse.tanh"{{.*}} -> tensor<?xf32, {requires_grad = false}>
// CHECK:         "profuse.gt"{{.*}} -> tensor<?xi1, {requires_grad = false}>
func.func @mixed(%w: tensor<?xf32, {requires_grad = true}>, %x: tensor<?xf32, {requires_grad = false}>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xi1>) {
  %y = "profuse.mul"(%w, %x) : (tensor<?xf32, {requires_grad = true}>, tensor<?xf32, {requires_grad = false}>) -> tensor<?xf32>
  %z = "profuse.tanh"(%x) : (tensor<?xf32, {requires_grad = false}>) -> tensor<?xf32>
  %c = "profuse.gt"(%y, %z) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
  return %y, %z, %c : tensor<?xf32>, tensor<?xf32>, tensor<?xi1>
}

// Nothing is said where the inputs say nothing.
// CHECK-LABEL: func.func @unknown(
// CHECK:         "profuse.tanh"{{.*}} -> tensor<?xf32>
func.func @unknown(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = "profuse.tanh"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// Constants require none, and a branch of which one side does is not known to.
// CHECK-LABEL: func.func @branch(
// CHECK:         "profuse.constant"{{.*}} -> tensor<2xf32>
// CHECK:         return %{{.*}} : tensor<2xf32>
func.func @branch(%w: tensor<2xf32, {requires_grad = true}>, %c: i1) -> tensor<2xf32> {
  %r = scf.if %c -> tensor<2xf32> {
    %y = "profuse.tanh"(%w) : (tensor<2xf32, {requires_grad = true}>) -> tensor<2xf32>
    scf.yield %y : tensor<2xf32>
  } else {
    %k = "profuse.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    scf.yield %k : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}

// What is in memory that is written may require gradients, as what is written may.
// CHECK-LABEL: func.func @written(
// CHECK:         "profuse.full"{{.*}} -> tensor<3xf32>
// CHECK:         "profuse.copy_"
// CHECK:         return %{{.*}} : tensor<3xf32>
func.func @written(%w: tensor<3xf32, {requires_grad = true}>) -> tensor<3xf32> {
  %zero = "profuse.constant"() {value = 0.0 : f64} : () -> f64
  %m = "profuse.full"(%zero) {dtype = f32, shape = array<i64: 3>} : (f64) -> tensor<3xf32>
  %c = "profuse.copy_"(%m, %w) : (tensor<3xf32>, tensor<3xf32, {requires_grad = true}>) -> tensor<3xf32>
  return %m : tensor<3xf32>
}
