// Groups of what kernels compute to the last bit as NumPy does, in the layout that NumPy gives it.
// RUN: profuse-opt %s -p 'form-fusions{min-size=1 exact=true}' --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t
// RUN: profuse-opt %s -p 'form-fusions{min-size=1}' | FileCheck %s --check-prefix=ANY

// STATS-DAG: 2 refused: exp: a kernel may round otherwise than NumPy does, which exact=True rules out
// STATS-DAG: 1 refused: sum: a kernel may round otherwise than NumPy does, which exact=True rules out
// STATS-DAG: 1 refused: cast: a kernel may round otherwise than NumPy does, which exact=True rules out
// STATS-DAG: 1 refused: add: a kernel may round otherwise than NumPy does, which exact=True rules out
// STATS-DAG: 1 refused: mul: operand 0 may not lie in C order, which exact=True asks for
// STATS-DAG: 1 refused: sub: operand 1 may not lie in C order, which exact=True asks for

// CHECK-LABEL: func.func @rounds_otherwise(
// CHECK-NEXT:    "profuse.fusion_group"
// CHECK-NEXT:    "profuse.exp"
// CHECK-NEXT:    "profuse.sum"
// CHECK-NEXT:    "profuse.fusion_group"
// CHECK-NEXT:    return
// ANY-LABEL:   func.func @rounds_otherwise(
// ANY-NEXT:      "profuse.fusion_group"
// ANY-NEXT:      return
func.func @rounds_otherwise(%x: tensor<4x8xf32, {strides = "contiguous"}>, %n: f64) -> tensor<4xf32> {
  %0 = "profuse.mul"(%x, %n) : (tensor<4x8xf32, {strides = "contiguous"}>, f64) -> tensor<4x8xf32>
  %1 = "profuse.exp"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "profuse.sum"(%1) {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %3 = "profuse.div"(%2, %n) : (tensor<4xf32>, f64) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Halves, and integers of floats that may not fit.
// CHECK-LABEL: func.func @dtypes(
// CHECK-NOT:     fusion_group
// CHECK:         return
func.func @dtypes(%x: tensor<4xf16>, %y: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xi32>) {
  %0 = "profuse.add"(%x, %x) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  %1 = "profuse.cast"(%y) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  return %0, %1 : tensor<4xf16>, tensor<4xi32>
}

// Of one axis any stride will do.
// CHECK-LABEL: func.func @layouts(
// CHECK-NEXT:    "profuse.mul"
// CHECK-NEXT:    "profuse.sub"
// CHECK-NEXT:    "profuse.fusion_group"
// CHECK-NEXT:    return
func.func @layouts(%x: tensor<4x8xf32, {strides = ["1", "4"]}>, %y: tensor<4x8xf32>, %z: tensor<8xf32, {strides = ["3"]}>, %n: f64) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = "profuse.mul"(%x, %n) : (tensor<4x8xf32, {strides = ["1", "4"]}>, f64) -> tensor<4x8xf32>
  %1 = "profuse.sub"(%z, %y) : (tensor<8xf32, {strides = ["3"]}>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "profuse.neg"(%z) : (tensor<8xf32, {strides = ["3"]}>) -> tensor<8xf32>
  return %0, %2, %2 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
}

// Each user of a view that is fused has one of its own; what is not fused reads one outside.
// CHECK-LABEL: func.func @views(
// CHECK-NEXT:    %[[G:.*]] = "profuse.fusion_group"(%arg0, %arg1) {callee = @[[F:fusion_[0-9]+]]}
// CHECK-NEXT:    %[[V:.*]] = "profuse.broadcast_to"(%arg0)
// CHECK-NEXT:    %[[E:.*]] = "profuse.exp"(%[[V]])
// CHECK-NEXT:    return %[[G]], %[[E]], %[[V]]
// CHECK:       func.func private @[[F]](
// CHECK-NEXT:    "profuse.broadcast_to"
// CHECK-NEXT:    "profuse.mul"
// CHECK-NEXT:    return
func.func @views(%x: tensor<8xf32>, %y: tensor<4x8xf32, {strides = "contiguous"}>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = "profuse.broadcast_to"(%x) {shape = array<i64: 4, 8>} : (tensor<8xf32>) -> tensor<4x8xf32>
  %1 = "profuse.mul"(%0, %y) : (tensor<4x8xf32>, tensor<4x8xf32, {strides = "contiguous"}>) -> tensor<4x8xf32>
  %2 = "profuse.exp"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %2, %0 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
