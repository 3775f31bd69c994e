// RUN: profuse-opt %s -p inline-diff-graphs --verify-each | FileCheck %s
// RUN: profuse-opt %s -p 'inline-diff-graphs{threshold=5}' --verify-each | FileCheck %s --check-prefix=FIVE
// RUN: profuse-opt %s -p 'inline-diff-graphs{threshold=1}' --verify-each | FileCheck %s --check-prefix=ONE

// R1.34: by default one op is put back, two are not. Temporaries are dropped.
// CHECK-LABEL: func.func @one(
// CHECK-NEXT:    %[[R:.*]] = "profuse.exp"
// CHECK-NEXT:    return %[[R]]
// ONE-LABEL:   func.func @one(
// ONE-NEXT:      diff_graph
func.func @one(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.diff_graph"(%x) {forward = @a_forward, reverse = @a_reverse, f_real_outputs = 1 : i64, df_input_vjps = array<i64: 0>, df_input_captured_outputs = array<i64: 1>, df_output_vjps = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// CHECK-LABEL: func.func @two(
// CHECK-NEXT:    diff_graph
func.func @two(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.diff_graph"(%x) {forward = @b_forward, reverse = @b_reverse, f_real_outputs = 1 : i64, df_input_vjps = array<i64: 0>, df_input_captured_outputs = array<i64: 1>, df_output_vjps = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// R2.15: with threshold 5, four ops are put back, and five are not.
// FIVE-LABEL:  func.func @four(
// FIVE-NOT:      diff_graph
// FIVE:          return
// ONE-LABEL:   func.func @four(
// ONE-NEXT:      diff_graph
func.func @four(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.diff_graph"(%x) {forward = @c_forward, reverse = @c_reverse, f_real_outputs = 1 : i64, df_input_vjps = array<i64: 0>, df_input_captured_outputs = array<i64: 1>, df_output_vjps = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// FIVE-LABEL:  func.func @five(
// FIVE-NEXT:     diff_graph
// ONE-LABEL:   func.func @five(
// ONE-NEXT:      diff_graph
func.func @five(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.diff_graph"(%x) {forward = @d_forward, reverse = @d_reverse, f_real_outputs = 1 : i64, df_input_vjps = array<i64: 0>, df_input_captured_outputs = array<i64: 1>, df_output_vjps = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// What holds a fusion group or a guard stays, however few ops it has.
// CHECK-LABEL: func.func @fused(
// CHECK-NEXT:    diff_graph
// FIVE-LABEL:  func.func @fused(
// FIVE-NEXT:     diff_graph
func.func @fused(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.diff_graph"(%x) {forward = @e_forward, reverse = @a_reverse, f_real_outputs = 1 : i64, df_input_vjps = array<i64: 0>, df_input_captured_outputs = array<i64: 1>, df_output_vjps = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @e_forward(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.fusion_group"(%x) {callee = @e_fused} : (!profuse.tensor) -> !profuse.tensor
  return %0, %0 : !profuse.tensor, !profuse.tensor
}
func.func private @e_fused(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @a_forward(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0, %0 : !profuse.tensor, !profuse.tensor
}
func.func private @a_reverse(%g: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%g, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @b_forward(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.sin"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1, %0 : !profuse.tensor, !profuse.tensor
}
func.func private @b_reverse(%g: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%g, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @c_forward(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.sin"(%0) : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.cos"(%1) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.tanh"(%2) : (!profuse.tensor) -> !profuse.tensor
  return %3, %0 : !profuse.tensor, !profuse.tensor
}
func.func private @c_reverse(%g: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%g, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @d_forward(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.sin"(%0) : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.cos"(%1) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.tanh"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.sqrt"(%3) : (!profuse.tensor) -> !profuse.tensor
  return %4, %0 : !profuse.tensor, !profuse.tensor
}
func.func private @d_reverse(%g: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.mul"(%g, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
