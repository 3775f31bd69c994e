// Ops that are compositions of others, where the types of their operands are known.
// RUN: profuse-opt %s --pass-pipeline=decompose --verify-each | FileCheck %s

// CHECK-LABEL: func.func @softmax(
// CHECK-NEXT:    %[[M:.*]] = "profuse.max"(%[[X:.*]]) {axes = array<i64: 1>, keepdims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
// CHECK-NEXT:    %[[S:.*]] = "profuse.sub"(%[[X]], %[[M]])
// CHECK-NEXT:    %[[E:.*]] = "profuse.exp"(%[[S]])
// CHECK-NEXT:    %[[T:.*]] = "profuse.sum"(%[[E]]) {axes = array<i64: 1>, keepdims = true}
// CHECK-NEXT:    %[[Y:.*]] = "profuse.div"(%[[E]], %[[T]])
// CHECK-NEXT:    return %[[Y]]
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "profuse.softmax"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// 16-bit floats are normalised in f32, and what is inside of an op comes apart as well.
// CHECK-LABEL: func.func @dropout(
// CHECK-NOT:     "profuse.native_dropout"
// CHECK-NOT:     "profuse.random_bits"
// CHECK:         "profuse.iota"
// CHECK:         "profuse.select"
func.func @dropout(%x: tensor<4xf16>, %seed: i64, %offset: i64) -> tensor<4xf16> {
  %0:2 = "profuse.native_dropout"(%x, %seed, %offset) {p = 0.5 : f64} : (tensor<4xf16>, i64, i64) -> (tensor<4xf16>, tensor<4xi1>)
  return %0#0 : tensor<4xf16>
}

// Sizes that vary are asked for.
// CHECK-LABEL: func.func @reshaped(
// CHECK:         "profuse.dim"(%{{.*}}) {axis = 0 : i64}
// CHECK:         "profuse.reshape"
func.func @reshaped(%x: tensor<?x6x4xf32>) -> !profuse.tensor {
  %0:3 = "profuse.native_group_norm"(%x) {groups = 3 : i64} : (tensor<?x6x4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %0#0 : !profuse.tensor
}

// CHECK-LABEL: func.func @not_known(
// CHECK-NEXT:    "profuse.softmax"
// CHECK-NEXT:    "profuse.native_layer_norm"
func.func @not_known(%x: !profuse.tensor, %y: tensor<4x8xf32>) -> (!profuse.tensor, tensor<4x8xf32>) {
  %0 = "profuse.softmax"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1:3 = "profuse.native_layer_norm"(%y, %x) {shape = array<i64: 8>, given = 1 : i64} : (tensor<4x8xf32>, !profuse.tensor) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  return %0, %1#0 : !profuse.tensor, tensor<4x8xf32>
}

// A result that is used although it is masked is undefined.
// CHECK-LABEL: func.func @masked(
// CHECK-DAG:     %[[U:.*]] = "profuse.autograd_zero"()
// CHECK:         return %{{.*}}, %[[U]]
func.func @masked(%g: tensor<4x8xf32>, %s: tensor<4x1xf32>) -> (!profuse.tensor, !profuse.tensor) {
  %0:3 = "profuse.native_layer_norm_backward"(%g, %g, %s, %s) {shape = array<i64: 8>, mask = array<i1: true, false, false>} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %0#0, %0#1 : !profuse.tensor, !profuse.tensor
}
