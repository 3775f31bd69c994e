// RUN: profuse-opt %s -p insert-guards --verify-each | FileCheck %s
// RUN: profuse-opt %s -p insert-guards --print-locations | FileCheck %s --check-prefix=LOC
// RUN: profuse-opt %s -p 'insert-guards,insert-guards' | FileCheck %s

// R1.38: check, branch, group on checked operands; else a fallback graph on the unchecked ones.
// R1.37: all that remains outside is bare again.
// CHECK-LABEL: func.func @guard(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[S:.*]]: f64) -> !profuse.tensor
// CHECK-NEXT:    %[[C:.*]]:2 = "profuse.type_check"(%[[X]])
// CHECK-SAME:      {types = [tensor<4xf32, {strides = ["1"]}>]}
// CHECK-SAME:      : (!profuse.tensor) -> (tensor<4xf32, {strides = ["1"]}>, i1)
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[C]]#1 -> (!profuse.tensor) {
// CHECK-NEXT:      %[[F:.*]] = "profuse.fusion_group"(%[[C]]#0, %[[S]]) {callee = @fusion_0}
// CHECK-SAME:        : (tensor<4xf32, {strides = ["1"]}>, f64) -> !profuse.tensor
// CHECK-NEXT:      scf.yield %[[F]] : !profuse.tensor
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[G:.*]] = "profuse.fallback_graph"(%[[X]], %[[S]]) {callee = @fallback_0}
// CHECK-SAME:        : (!profuse.tensor, f64) -> !profuse.tensor
// CHECK-NEXT:      scf.yield %[[G]] : !profuse.tensor
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]] : !profuse.tensor
// LOC-DAG:       #[[L:.*]] = loc("model.py":7:1)
// LOC-DAG:       "profuse.type_check"{{.*}} loc(#[[L]])
// LOC-DAG:       "profuse.fallback_graph"{{.*}} loc(#[[L]])
// LOC-DAG:       scf.yield {{.*}} loc(#[[L]])
// LOC-DAG:       } loc(#[[L]])
func.func @guard(%x: tensor<4xf32, {strides = ["1"]}>, %s: f64) -> tensor<4xf32> {
  %0 = "profuse.fusion_group"(%x, %s) {callee = @fusion_0} : (tensor<4xf32, {strides = ["1"]}>, f64) -> tensor<4xf32> loc("model.py":7:1)
  return %0 : tensor<4xf32>
}
func.func private @fusion_0(%x: tensor<4xf32, {strides = ["1"]}>, %s: f64) -> tensor<4xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32, {strides = ["1"]}>) -> tensor<4xf32>
  %1 = "profuse.mul"(%0, %s) : (tensor<4xf32>, f64) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// What an earlier group returns is checked too, as its fallback may have made it; a constant
// is not. Without an operand to check there is no guard.
// CHECK-LABEL: func.func @operands(
// CHECK-DAG:     %[[K:.*]] = "profuse.constant"{{.*}} -> tensor<65xf32>
// CHECK-DAG:     %[[A:.*]] = "profuse.fusion_group"() {callee = @fusion_1} : () -> !profuse.tensor
// CHECK:         %[[C:.*]]:2 = "profuse.type_check"(%[[A]])
// CHECK:           "profuse.fusion_group"(%[[C]]#0, %[[K]]) {callee = @fusion_2}
// CHECK:           "profuse.fallback_graph"(%[[A]], %[[K]]) {callee = @fallback_2}
func.func @operands() -> tensor<65xf32> {
  %k = "profuse.constant"() {value = dense<1.0> : tensor<65xf32>} : () -> tensor<65xf32>
  %0 = "profuse.fusion_group"() {callee = @fusion_1} : () -> tensor<65xf32>
  %1 = "profuse.fusion_group"(%0, %k) {callee = @fusion_2} : (tensor<65xf32>, tensor<65xf32>) -> tensor<65xf32>
  return %1 : tensor<65xf32>
}
func.func private @fusion_1() -> tensor<65xf32> {
  %k = "profuse.constant"() {value = dense<1.0> : tensor<65xf32>} : () -> tensor<65xf32>
  %0 = "profuse.tanh"(%k) : (tensor<65xf32>) -> tensor<65xf32>
  return %0 : tensor<65xf32>
}
func.func private @fusion_2(%x: tensor<65xf32>, %k: tensor<65xf32>) -> tensor<65xf32> {
  %0 = "profuse.mul"(%x, %k) : (tensor<65xf32>, tensor<65xf32>) -> tensor<65xf32>
  return %0 : tensor<65xf32>
}

// Groups in nested blocks; a constant that a branch yields is bare like the other branch's value.
// CHECK-LABEL: func.func @nested(
// CHECK:         %[[K:.*]] = "profuse.constant"{{.*}} -> !profuse.tensor
// CHECK:         scf.if %{{.*}} -> (!profuse.tensor) {
// CHECK-NEXT:      %[[C:.*]]:2 = "profuse.type_check"
// CHECK-NEXT:      %[[R:.*]] = scf.if %[[C]]#1 -> (!profuse.tensor) {
// CHECK:           scf.yield %[[R]]
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[K]] : !profuse.tensor
func.func @nested(%x: tensor<2xf32>, %c: i1) -> tensor<2xf32> {
  %k = "profuse.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %r = scf.if %c -> tensor<2xf32> {
    %0 = "profuse.fusion_group"(%x) {callee = @fusion_3} : (tensor<2xf32>) -> tensor<2xf32>
    scf.yield %0 : tensor<2xf32>
  } else {
    scf.yield %k : tensor<2xf32>
  }
  return %r : tensor<2xf32>
}
func.func private @fusion_3(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "profuse.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// The fallback is the body with nothing known.
// CHECK-LABEL: func.func private @fallback_0(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[S:.*]]: f64) -> !profuse.tensor
// CHECK-NEXT:    %[[A:.*]] = "profuse.tanh"(%[[X]]) : (!profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[B:.*]] = "profuse.mul"(%[[A]], %[[S]]) : (!profuse.tensor, f64) -> !profuse.tensor
// CHECK-NEXT:    return %[[B]]
// CHECK-NOT:   @fallback_1
