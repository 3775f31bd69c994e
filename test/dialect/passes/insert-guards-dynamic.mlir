// RUN: profuse-opt %s -p 'insert-guards{dynamic=true}' --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t

// STATS: 1 dissolved: reshape: {{.*}}s0*s1{{.*}}, 3 guards

// R1.40: equal sizes share a symbol, 1 stays literal, each operand keeps a stride class.
// CHECK-LABEL: func.func @guard(
// CHECK:         "profuse.dynamic_guard"(%{{.*}}, %{{.*}}, %{{.*}}) {types = [
// CHECK-SAME:      tensor<?x?xf32, {dims = ["s0", "s1"], requires_grad = false, strides = "contiguous"}>,
// CHECK-SAME:      tensor<?x1xf32, {dims = ["s0", "1"], requires_grad = false, strides = "contiguous"}>,
// CHECK-SAME:      tensor<?x?xf32, {dims = ["s0", "s1"], requires_grad = false, strides = ["1", "?"]}>]}
// CHECK:         scf.if
// CHECK:           "profuse.fusion_group"{{.*}} {callee = @fusion_0}
// CHECK:           "profuse.fallback_graph"{{.*}} {callee = @fallback_0}
func.func @guard(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>, %z: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "profuse.fusion_group"(%x, %y, %z) {callee = @fusion_0} : (tensor<2x3xf32>, tensor<2x1xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Types of the body are inferred again from the symbols.
// CHECK-LABEL: func.func private @fusion_0(
// CHECK-SAME:    -> tensor<?x?xf32, {dims = ["s0", "s1"]}>
// CHECK:         "profuse.add"{{.*}} -> tensor<?x?xf32, {dims = ["s0", "s1"]}>
// CHECK:         "profuse.mul"{{.*}} -> tensor<?x?xf32, {dims = ["s0", "s1"]}>
func.func private @fusion_0(%x: tensor<2x3xf32, {strides = ["3", "1"]}>, %y: tensor<2x1xf32, {strides = ["1", "1"]}>, %z: tensor<2x3xf32, {strides = ["1", "2"]}>) -> tensor<2x3xf32> {
  %0 = "profuse.add"(%x, %y) : (tensor<2x3xf32, {strides = ["3", "1"]}>, tensor<2x1xf32, {strides = ["1", "1"]}>) -> tensor<2x3xf32>
  %1 = "profuse.mul"(%0, %z) : (tensor<2x3xf32>, tensor<2x3xf32, {strides = ["1", "2"]}>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// A size that a constant has stays literal: no symbol could be shown to equal it.
// CHECK-LABEL: func.func @pinned(
// CHECK:         "profuse.dynamic_guard"(%{{.*}}) {types = [tensor<?x3xf32, {dims = ["s0", "3"]
func.func @pinned(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_1} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
func.func private @fusion_1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %k = "profuse.constant"() {value = dense<1.0> : tensor<3xf32>} : () -> tensor<3xf32>
  %0 = "profuse.add"(%x, %k) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Sizes of which a product has to be a number are that of the profile.
// CHECK-LABEL: func.func @product(
// CHECK:         "profuse.dynamic_guard"(%{{.*}}) {types = [tensor<2x3xf32
func.func @product(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_2} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
func.func private @fusion_2(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "profuse.reshape"(%0) {shape = array<i64: 3, 2>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %1 : tensor<3x2xf32>
}

// A group whose sizes do not follow from symbols is dissolved, its body inline and bare.
// CHECK-LABEL: func.func @dissolved(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[A:.*]] = "profuse.tanh"(%[[X]]) : (!profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[B:.*]] = "profuse.reshape"(%[[A]]) {shape = array<i64: -1, 4>} : (!profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    return %[[B]]
// CHECK-NOT:   @fusion_3
// CHECK-NOT:   @fallback_3
func.func @dissolved(%x: tensor<2x6xf32>) -> tensor<3x4xf32> {
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_3} : (tensor<2x6xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}
func.func private @fusion_3(%x: tensor<2x6xf32>) -> tensor<3x4xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %1 = "profuse.reshape"(%0) {shape = array<i64: -1, 4>} : (tensor<2x6xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}
