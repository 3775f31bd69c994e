// RUN: profuse-opt %s -p repair-batch-norm --verify-each | FileCheck %s
// RUN: profuse-opt %s -p repair-batch-norm,repair-batch-norm --verify-each | FileCheck %s

// R3.44: neither the index nor the reserve is a result of the group; the fallback keeps its own.
// A9: the dtype is written.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[C:.*]]:2 = "profuse.cuda_guard"(%[[X]])
// CHECK-NEXT:    %[[R:.*]]:3 = scf.if %[[C]]#1 -> (!profuse.tensor, !profuse.tensor, i64) {
// CHECK-NEXT:      %[[G:.*]] = "profuse.cuda_group"(%[[C]]#0) {callee = @device_0} : (tensor<?x?xf32, {device = "cuda:1"}>) -> !profuse.tensor
// CHECK-DAG:       %[[Z:.*]] = "profuse.constant"() {value = 0 : i64} : () -> i64
// CHECK-DAG:       %[[E:.*]] = "profuse.full"(%{{.*}}) {dtype = ui8, shape = array<i64: 0>} : (i64) -> !profuse.tensor
// CHECK:           scf.yield %[[G]], %[[E]], %{{.*}} :
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[F:.*]]:3 = "profuse.fallback_graph"(%[[X]]) {callee = @fallback_0}
// CHECK-NEXT:      scf.yield %[[F]]#0, %[[F]]#1, %[[F]]#2
func.func @forward(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, i64) {
  %c:2 = "profuse.cuda_guard"(%x) {types = [tensor<2x3xf32, {device = "cuda:1"}>]} : (!profuse.tensor) -> (tensor<?x?xf32, {device = "cuda:1"}>, i1)
  %r:3 = scf.if %c#1 -> (!profuse.tensor, !profuse.tensor, i64) {
    %g:3 = "profuse.cuda_group"(%c#0) {callee = @device_0} : (tensor<?x?xf32, {device = "cuda:1"}>) -> (!profuse.tensor, !profuse.tensor, i64)
    scf.yield %g#0, %g#1, %g#2 : !profuse.tensor, !profuse.tensor, i64
  } else {
    %f:3 = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor, i64)
    scf.yield %f#0, %f#1, %f#2 : !profuse.tensor, !profuse.tensor, i64
  }
  return %r#0, %r#1, %r#2 : !profuse.tensor, !profuse.tensor, i64
}
// CHECK:       func.func private @device_0(%{{.*}}: tensor<2x3xf32, {device = "cuda:1"}>) -> tensor<2x3xf32> {
// CHECK:         return %{{.*}} : tensor<2x3xf32>
func.func private @device_0(%x: tensor<2x3xf32, {device = "cuda:1"}>) -> (tensor<2x3xf32>, tensor<0xui8>, i64) {
  %0:7 = "profuse.batch_norm_index"(%x) {training = true} : (tensor<2x3xf32, {device = "cuda:1"}>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<0xui8>, i64, !profuse.tensor, !profuse.tensor)
  return %0#0, %0#3, %0#4 : tensor<2x3xf32>, tensor<0xui8>, i64
}
func.func private @fallback_0(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, i64) {
  %0:7 = "profuse.batch_norm_index"(%x) {training = true} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, i64, !profuse.tensor, !profuse.tensor)
  return %0#0, %0#3, %0#4 : !profuse.tensor, !profuse.tensor, i64
}

// R3.45: the reserve of the backward op is an empty array of f32, on the device of operand 1.
// CHECK-LABEL: func.func @backward(
// CHECK:         %[[C:.*]]:5 = "profuse.cuda_guard"
// CHECK-NEXT:    scf.if %[[C]]#4
// CHECK-NEXT:      %[[Z:.*]] = "profuse.constant"() {value = 0 : i64} : () -> i64
// CHECK-NEXT:      %[[E:.*]] = "profuse.full"(%[[Z]]) {dtype = f32, shape = array<i64: 0>} : (i64) -> tensor<0xf32, {device = "cuda:0"}>
// CHECK-NEXT:      "profuse.cuda_group"(%[[C]]#0, %[[C]]#1, %[[C]]#2, %[[E]], %{{.*}}) {callee = @device_1}
// CHECK:           "profuse.fallback_graph"(%{{.*}}, %{{.*}}, %{{.*}}, %[[U:.*]], %{{.*}}) {callee = @fallback_1}
// CHECK-LABEL: func.func private @device_1(
// CHECK-SAME:    tensor<0xf32, {device = "cuda:0"}>
// CHECK-LABEL: func.func private @fallback_1(
func.func @backward(%x: !profuse.tensor, %d: !profuse.tensor, %m: !profuse.tensor, %u: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %c:5 = "profuse.cuda_guard"(%x, %d, %m, %u) {types = [tensor<2x3xf32, {device = "cuda:0"}>, tensor<2x3xf32, {device = "cuda:0"}>, tensor<3xf32, {device = "cuda:0"}>, tensor<0xui8, {device = "cuda:0"}>]} : (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) -> (tensor<?x?xf32, {device = "cuda:0"}>, tensor<?x?xf32, {device = "cuda:0"}>, tensor<?xf32, {device = "cuda:0"}>, tensor<0xui8, {device = "cuda:0"}>, i1)
  %r = scf.if %c#4 -> !profuse.tensor {
    %g = "profuse.cuda_group"(%c#0, %c#1, %c#2, %c#3, %n) {callee = @device_1} : (tensor<?x?xf32, {device = "cuda:0"}>, tensor<?x?xf32, {device = "cuda:0"}>, tensor<?xf32, {device = "cuda:0"}>, tensor<0xui8, {device = "cuda:0"}>, i64) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x, %d, %m, %u, %n) {callee = @fallback_1} : (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, i64) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  return %r : !profuse.tensor
}
func.func private @device_1(%x: tensor<2x3xf32>, %d: tensor<2x3xf32>, %m: tensor<3xf32>, %u: tensor<0xui8>, %n: i64) -> tensor<2x3xf32> {
  %0:3 = "profuse.batch_norm_index_backward"(%n, %x, %d, %m, %m, %m, %u) {given = 25 : i64, training = true} : (i64, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<0xui8>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  return %0#0 : tensor<2x3xf32>
}
func.func private @fallback_1(%x: !profuse.tensor, %d: !profuse.tensor, %m: !profuse.tensor, %u: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %0:3 = "profuse.batch_norm_index_backward"(%n, %x, %d, %m, %m, %m, %u) {given = 25 : i64, training = true} : (i64, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %0#0 : !profuse.tensor
}
