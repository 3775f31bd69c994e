// RUN: profuse-opt %s -p 'form-diff-graphs{observed=true},guard-diff-graphs' --verify-each | FileCheck %s

// R1.30: the observer in a branch counts as that in front of an op. What is read in a branch that no
// run has taken is left to the tape, and the rest is a subgraph nevertheless (R1.32).
// CHECK-LABEL: func.func @taken(
// CHECK:         "profuse.rg_check"({{.*}}) {types = [tensor<?xf32, {requires_grad = true}>, tensor<?x?xf64, {requires_grad = true}>]}
// CHECK:           "profuse.diff_graph"
// CHECK-NOT:     scf.if {{.*}} -> (!profuse.tensor) {
// CHECK:         } else {
// CHECK:         "profuse.fallback_graph"
func.func @taken(%c: i1, %x: !profuse.tensor, %w: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4xf32, {requires_grad = true}>} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
  %1 = scf.if %c -> (!profuse.tensor) {
    %q = "profuse.profile"(%w) {site = 1 : i64, profiled_type = tensor<2x4xf64, {requires_grad = true}>} : (!profuse.tensor) -> !profuse.tensor
    %2 = "profuse.sin"(%q) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    %q = "profuse.profile"(%w) {site = 2 : i64} : (!profuse.tensor) -> !profuse.tensor
    %2 = "profuse.cos"(%q) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }
  %3 = "profuse.mul"(%0, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %3 : !profuse.tensor
}

// CHECK-LABEL: func.func @never(
// CHECK:         "profuse.rg_check"
// CHECK:           "profuse.diff_graph"
// CHECK:         scf.if %{{.*}} -> (!profuse.tensor) {
// CHECK-NEXT:      "profuse.profile"
// CHECK-NEXT:      "profuse.sin"
// CHECK:         "profuse.mul"
func.func @never(%c: i1, %x: !profuse.tensor, %w: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4xf32, {requires_grad = true}>} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.tanh"(%0) : (!profuse.tensor) -> !profuse.tensor
  %2 = scf.if %c -> (!profuse.tensor) {
    %q = "profuse.profile"(%w) {site = 1 : i64} : (!profuse.tensor) -> !profuse.tensor
    %4 = "profuse.sin"(%q) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %4 : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  %3 = "profuse.mul"(%1, %2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %3 : !profuse.tensor
}
