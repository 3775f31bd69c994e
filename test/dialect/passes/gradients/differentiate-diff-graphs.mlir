// RUN: profuse-opt %s -p differentiate-diff-graphs,dce --verify-each | FileCheck %s

// R1.33, R2.29: a*b+c needs a and b, and no temporaries. c needs no gradient.
// CHECK-LABEL: func.func @product(
// CHECK:         "profuse.diff_graph"(%{{.*}}, %{{.*}}, %{{.*}}) {df_input_captured_inputs = array<i64: 0, 1>, df_input_vjps = array<i64: 0>, df_output_vjps = array<i64: 0, 1>, f_real_outputs = 1 : i64, forward = @diff_0_forward, reverse = @diff_0_reverse}
func.func @product(%a: tensor<?xf32, {requires_grad = true}>, %b: tensor<?xf32, {requires_grad = true}>, %c: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.diff_graph"(%a, %b, %c) {callee = @diff_0} : (tensor<?xf32, {requires_grad = true}>, tensor<?xf32, {requires_grad = true}>, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @diff_0(%a: tensor<?xf32, {requires_grad = true}>, %b: tensor<?xf32, {requires_grad = true}>, %c: tensor<?xf32, {requires_grad = false}>) -> !profuse.tensor {
  %p = "profuse.profile"(%a) {site = 0 : i64} : (tensor<?xf32, {requires_grad = true}>) -> !profuse.tensor
  %0 = "profuse.mul"(%p, %b) : (!profuse.tensor, tensor<?xf32, {requires_grad = true}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %c) : (!profuse.tensor, tensor<?xf32, {requires_grad = false}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// R2.30: any of two incoming gradients may be undefined.
// CHECK-LABEL: func.func @two(
// CHECK:         forward = @diff_1_forward, reverse = @diff_1_reverse
func.func @two(%a: tensor<?xf32, {requires_grad = true}>) -> (!profuse.tensor, !profuse.tensor) {
  %0:2 = "profuse.diff_graph"(%a) {callee = @diff_1} : (tensor<?xf32, {requires_grad = true}>) -> (!profuse.tensor, !profuse.tensor)
  return %0#0, %0#1 : !profuse.tensor, !profuse.tensor
}
func.func private @diff_1(%a: tensor<?xf32, {requires_grad = true}>) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.sin"(%a) : (tensor<?xf32, {requires_grad = true}>) -> !profuse.tensor
  %1 = "profuse.cos"(%a) : (tensor<?xf32, {requires_grad = true}>) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}

// What has no gradient stays, op by op.
// CHECK-LABEL: func.func @none(
// CHECK-NOT:     diff_graph
// CHECK:         scf.for
// CHECK:         return
func.func @none(%a: tensor<?xf32, {requires_grad = true}>, %n: i64) -> !profuse.tensor {
  %0 = "profuse.diff_graph"(%a, %n) {callee = @diff_2} : (tensor<?xf32, {requires_grad = true}>, i64) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @diff_2(%a: tensor<?xf32, {requires_grad = true}>, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %two = "profuse.constant"() {value = 2 : i64} : () -> i64
  %c = "profuse.copy"(%a) : (tensor<?xf32, {requires_grad = true}>) -> !profuse.tensor
  %r = scf.for %i = %zero to %n step %two iter_args(%v = %c) -> (!profuse.tensor) : i64 {
    %w = "profuse.sin"(%v) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %w : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// The forward half observes nothing and knows no types.
// CHECK:       func.func private @diff_0_forward(%[[A:.*]]: !profuse.tensor, %[[B:.*]]: !profuse.tensor, %[[C:.*]]: !profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[M:.*]] = "profuse.mul"(%[[A]], %[[B]])
// CHECK-NEXT:    %[[S:.*]] = "profuse.add"(%[[M]], %[[C]])
// CHECK-NEXT:    return %[[S]]
// CHECK:       func.func private @diff_0_reverse(%[[G:.*]]: !profuse.tensor, %{{.*}}: !profuse.tensor, %{{.*}}: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
// CHECK-NOT:     grad_of
// CHECK:       func.func private @diff_1_reverse(%[[G:.*]]: !profuse.tensor, %[[H:.*]]: !profuse.tensor, %{{.*}}: !profuse.tensor) -> !profuse.tensor
// CHECK:         %[[A:.*]] = "profuse.grad_of"(%[[H]])
// CHECK:         {forward = "cos"}
// CHECK:         %[[B:.*]] = "profuse.grad_of"(%[[G]])
// CHECK:         {forward = "sin"}
// CHECK:         "profuse.autograd_add"(%[[A]], %[[B]])
