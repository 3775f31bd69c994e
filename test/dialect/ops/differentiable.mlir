// RUN: profuse-opt %s | FileCheck %s
// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// R1.31, R1.39: what a differentiated graph asks of its operands.
// CHECK-LABEL: func.func @check
// CHECK:         %{{.*}}:3 = "profuse.rg_check"(%{{.*}}, %{{.*}}) {types = [tensor<?xf32, {requires_grad = true}>, tensor<?x?xf32, {requires_grad = false}>]}
func.func @check(%x: !profuse.tensor, %y: !profuse.tensor) -> i1 {
  %0:3 = "profuse.rg_check"(%x, %y) {types = [tensor<?xf32, {requires_grad = true}>, tensor<?x?xf32, {requires_grad = false}>]} : (!profuse.tensor, !profuse.tensor) -> (tensor<?xf32, {requires_grad = true}>, tensor<?x?xf32, {requires_grad = false}>, i1)
  return %0#2 : i1
}

// R2.18: the indices survive, and a subgraph that is not differentiated yet has none.
// CHECK-LABEL: func.func @graphs
// CHECK:         "profuse.diff_graph"(%{{.*}}, %{{.*}}) {callee = @body} :
// CHECK:         "profuse.diff_graph"(%{{.*}}, %{{.*}}) {
// CHECK-SAME:      df_input_captured_inputs = array<i64: 0, 1>
// CHECK-SAME:      df_input_captured_outputs = array<i64: 1>
// CHECK-SAME:      df_input_vjps = array<i64: 0>
// CHECK-SAME:      df_output_vjps = array<i64: 0, 1>
// CHECK-SAME:      f_real_outputs = 1 : i64
// CHECK-SAME:      forward = @forward, reverse = @reverse
func.func @graphs(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.diff_graph"(%x, %y) {callee = @body} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.diff_graph"(%0, %y) {forward = @forward, reverse = @reverse, f_real_outputs = 1 : i64, df_input_vjps = array<i64: 0>, df_input_captured_inputs = array<i64: 0, 1>, df_input_captured_outputs = array<i64: 1>, df_output_vjps = array<i64: 0, 1>} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}
func.func private @body(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%x, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @forward(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.mul"(%0, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %1, %0 : !profuse.tensor, !profuse.tensor
}
func.func private @reverse(%g: !profuse.tensor, %x: !profuse.tensor, %y: !profuse.tensor, %e: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.mul"(%g, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.mul"(%0, %e) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %2 = "profuse.mul"(%g, %e) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %1, %2 : !profuse.tensor, !profuse.tensor
}
