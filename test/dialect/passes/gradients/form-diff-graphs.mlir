// RUN: profuse-opt %s -p form-diff-graphs --verify-each | FileCheck %s
// RUN: profuse-opt %s -p 'form-diff-graphs{threshold=1}' --verify-each | FileCheck %s --check-prefix=ONE

// R1.29: one differentiable op makes no subgraph, unless the threshold is 1.
// CHECK-LABEL: func.func @one(
// CHECK-NOT:     diff_graph
// CHECK:         return
// ONE-LABEL:   func.func @one(
// ONE-NEXT:      "profuse.diff_graph"(%{{.*}}) {callee = @diff_0}
func.func @one(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// R1.29: two do; observers come along, constants are copied.
// CHECK-LABEL: func.func @two(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK:         %[[R:.*]] = "profuse.diff_graph"(%[[X]]) {callee = @diff_[[TWO:.*]]} : (!profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    return %[[R]]
func.func @two(%x: !profuse.tensor) -> !profuse.tensor {
  %two = "profuse.constant"() {value = 2.0 : f64} : () -> f64
  %p = "profuse.profile"(%x) {site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.profile"(%0) {site = 1 : i64} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.mul"(%q, %two) : (!profuse.tensor, f64) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// R1.29: views stay outside, on both sides of which ops are merged.
// CHECK-LABEL: func.func @views(
// CHECK-NEXT:    %[[A:.*]] = "profuse.diff_graph"
// CHECK-NEXT:    %[[V:.*]] = "profuse.reshape"(%[[A]])
// CHECK-NEXT:    "profuse.diff_graph"(%[[V]])
func.func @views(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.mul"(%0, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %2 = "profuse.reshape"(%1) {shape = array<i64: -1>} : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.tanh"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.mul"(%3, %2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %4 : !profuse.tensor
}

// R1.29: an op with an effect bounds what is merged.
// CHECK-LABEL: func.func @effects(
// CHECK:         "profuse.diff_graph"
// CHECK-NEXT:    "profuse.warn"
// CHECK-NEXT:    "profuse.diff_graph"
func.func @effects(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.mul"(%0, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  "profuse.warn"() {message = "now"} : () -> ()
  %2 = "profuse.tanh"(%1) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.mul"(%2, %2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %3 : !profuse.tensor
}

// R1.29: two results that would share memory are one result, and what passes it on stays outside.
// CHECK-LABEL: func.func @shared(
// CHECK-NEXT:    %[[Y:.*]] = "profuse.diff_graph"(%{{.*}}) {{.*}} -> !profuse.tensor
// CHECK-NEXT:    %[[P:.*]] = "profuse.stop_gradient"(%[[Y]])
// CHECK-NEXT:    return %[[Y]], %[[P]]
func.func @shared(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.mul"(%0, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %2 = "profuse.stop_gradient"(%1) : (!profuse.tensor) -> !profuse.tensor
  return %1, %2 : !profuse.tensor, !profuse.tensor
}

// Neither what may be undefined nor what a user's rule differentiates is merged.
// CHECK-LABEL: func.func @apart(
// CHECK-NOT:     diff_graph
// CHECK:         return
func.func @apart(%g: !profuse.tensor, %x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.autograd_add"(%g, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// Blocks of branches are merged in, too; a branch whose ops all have gradients is one of them.
// CHECK-LABEL: func.func @blocks(
// CHECK-NOT:     scf.if
// CHECK:         "profuse.diff_graph"(%{{.*}}, %{{.*}}) {callee = @diff_[[B:.*]]} : (i1, !profuse.tensor)
func.func @blocks(%x: !profuse.tensor, %c: i1) -> !profuse.tensor {
  %0 = scf.if %c -> (!profuse.tensor) {
    %1 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %1 : !profuse.tensor
  } else {
    %1 = "profuse.sin"(%x) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %1 : !profuse.tensor
  }
  return %0 : !profuse.tensor
}

// CHECK-LABEL: func.func @inside(
// CHECK:         scf.if
// CHECK-NEXT:      "profuse.warn"
// CHECK-NEXT:      "profuse.diff_graph"
func.func @inside(%x: !profuse.tensor, %c: i1) -> !profuse.tensor {
  %0 = scf.if %c -> (!profuse.tensor) {
    "profuse.warn"() {message = "then"} : () -> ()
    %1 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    %2 = "profuse.mul"(%1, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  return %0 : !profuse.tensor
}

// CHECK:       func.func private @diff_[[TWO]](%[[A:.*]]: !profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[C:.*]] = "profuse.constant"
// CHECK-NEXT:    %[[P:.*]] = "profuse.profile"(%[[A]])
// CHECK-NEXT:    %[[E:.*]] = "profuse.exp"(%[[P]])
// CHECK-NEXT:    %[[Q:.*]] = "profuse.profile"(%[[E]])
// CHECK-NEXT:    %[[M:.*]] = "profuse.mul"(%[[Q]], %[[C]])
// CHECK-NEXT:    return %[[M]]
// CHECK:       func.func private @diff_[[B]](
// CHECK-NEXT:    scf.if
