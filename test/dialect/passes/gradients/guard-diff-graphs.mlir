// RUN: profuse-opt %s -p form-diff-graphs,guard-diff-graphs --verify-each | FileCheck %s

// R1.30, R1.31: the operands adopt what the first observers inside have seen. Sizes are not asked
// for; a flag that is not known counts as set.
// CHECK-LABEL: func.func @guarded(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[K:.*]]:3 = "profuse.rg_check"(%[[X]], %[[Y]]) {types = [tensor<?x?xf32, {requires_grad = true}>, tensor<?xf32, {requires_grad = true}>]}
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[K]]#2 -> (!profuse.tensor) {
// CHECK-NEXT:      %[[D:.*]] = "profuse.diff_graph"(%[[K]]#0, %[[K]]#1) {callee = @diff_0}
// CHECK-NEXT:      scf.yield %[[D]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[F:.*]] = "profuse.fallback_graph"(%[[X]], %[[Y]]) {callee = @fallback_0}
// CHECK-NEXT:      scf.yield %[[F]]
// CHECK:         return %[[R]]
func.func @guarded(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4x3xf32, {device = "cpu", requires_grad = true}>} : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.profile"(%y) {site = 1 : i64, profiled_type = tensor<3xf32>} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.mul"(%p, %q) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// R1.30: of two chained subgraphs the first has the observer of what passes between them.
// CHECK-LABEL: func.func @chained(
// CHECK:         %[[A:.*]] = scf.if
// CHECK:           "profuse.diff_graph"
// CHECK:         "profuse.warn"
// CHECK-NEXT:    %[[K:.*]]:2 = "profuse.rg_check"(%[[A]]) {types = [tensor<?xf64, {requires_grad = true}>]}
// CHECK-NEXT:    scf.if %[[K]]#1
// CHECK-NEXT:      "profuse.diff_graph"(%[[K]]#0)
func.func @chained(%x: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<3xf64, {requires_grad = true}>} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.sin"(%0) : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.profile"(%1) {site = 1 : i64, profiled_type = tensor<3xf64, {requires_grad = true}>} : (!profuse.tensor) -> !profuse.tensor
  "profuse.warn"() {message = "between"} : () -> ()
  %2 = "profuse.exp"(%q) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.cos"(%2) : (!profuse.tensor) -> !profuse.tensor
  return %3 : !profuse.tensor
}

// R1.32: an operand whose use never ran leaves the ops where they are.
// CHECK-LABEL: func.func @unobserved(
// CHECK-NOT:     diff_graph
// CHECK:         "profuse.exp"
// CHECK-NOT:     diff_graph
// CHECK:         return
func.func @unobserved(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4x3xf32, {requires_grad = true}>} : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.profile"(%y) {site = 1 : i64} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.mul"(%p, %q) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// R1.38: constants are no operands of the check, and the branch reads them as they are.
// CHECK-LABEL: func.func @constant(
// CHECK:         %[[C:.*]] = "profuse.constant"()
// CHECK:         %[[K:.*]]:2 = "profuse.rg_check"(%{{.*}}) {types = [tensor<?xf64, {requires_grad = true}>]} : (!profuse.tensor) ->
// CHECK-NEXT:    scf.if %[[K]]#1
// CHECK-NEXT:      "profuse.diff_graph"(%[[K]]#0, %[[C]])
// CHECK:         "profuse.fallback_graph"(%{{.*}}, %[[C]])
func.func @constant(%x: !profuse.tensor) -> !profuse.tensor {
  %c = "profuse.constant"() {value = dense<2.0> : tensor<65xf64>} : () -> tensor<65xf64>
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<65xf64, {requires_grad = true}>} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.mul"(%p, %c) : (!profuse.tensor, tensor<65xf64>) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// The subgraph receives dtype, rank and flag; the fallback knows nothing and observes nothing.
// CHECK:       func.func private @diff_0(%{{.*}}: tensor<?x?xf32, {requires_grad = true}>, %{{.*}}: tensor<?xf32, {requires_grad = true}>) -> !profuse.tensor
// CHECK:         "profuse.profile"
// CHECK:       func.func private @fallback_0(%{{.*}}: !profuse.tensor, %{{.*}}: !profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    "profuse.mul"
// CHECK-NEXT:    "profuse.exp"
