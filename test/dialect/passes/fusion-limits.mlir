// R1.48: what the general fuser does not take, one case each; and what it takes where others do not.
// RUN: profuse-opt %s --pass-pipeline='form-fusions{min-size=1}' --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t
// RUN: profuse-opt %s --pass-pipeline='form-fusions{min-size=3}' | FileCheck %s --check-prefix=SIZE
// RUN: profuse-opt %s --pass-pipeline='form-fusions{min-size=1 max-values=2}' | FileCheck %s --check-prefix=VALUES

// STATS-DAG: refused: asin: complex is not lowered
// STATS-DAG: refused: exp: type of operand 0 is not known

// Functions of complex numbers that have no formula in kernels.
// CHECK-LABEL: func.func @complex(
// CHECK-NEXT:    "profuse.asin"
func.func @complex(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = "profuse.asin"(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// Incomplete types: a rank without sizes.
// CHECK-LABEL: func.func @incomplete(
// CHECK-NEXT:    "profuse.exp"
func.func @incomplete(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = "profuse.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// Producer and consumer in different blocks.
// CHECK-LABEL: func.func @blocks(
// CHECK-NEXT:    %[[A:.*]] = "profuse.fusion_group"
// CHECK-NEXT:    scf.if
// CHECK-NEXT:      "profuse.fusion_group"(%[[A]])
func.func @blocks(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = scf.if %c -> (tensor<4xf32>) {
    %2 = "profuse.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %2 : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// Different devices: two groups.
// CHECK-LABEL: func.func @devices(
// CHECK-COUNT-2: "profuse.fusion_group"
func.func @devices(%x: tensor<4xf32, {device = "cpu"}>, %y: tensor<4xf32, {device = "cuda:0"}>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "profuse.exp"(%x) : (tensor<4xf32, {device = "cpu"}>) -> tensor<4xf32>
  %1 = "profuse.exp"(%y) : (tensor<4xf32, {device = "cuda:0"}>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// Operands and results of both together, three here: producer and consumer stay apart.
// VALUES-LABEL: func.func @values(
// VALUES-NEXT:    "profuse.fusion_group"
// VALUES-NEXT:    "profuse.fusion_group"
// VALUES-NEXT:    return
// CHECK-LABEL: func.func @values(
// CHECK-NEXT:    "profuse.fusion_group"
// CHECK-NEXT:    return
func.func @values(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Fewer ops than the minimum: dissolved.
// SIZE-LABEL: func.func @small(
// SIZE-NEXT:    "profuse.exp"
// SIZE-NEXT:    "profuse.tanh"
func.func @small(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// None of these starts a group.
// CHECK-LABEL: func.func @starts(
// CHECK-NOT:     fusion_group
// CHECK:         return
func.func @starts(%x: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<1x4x8xf32>, tensor<2x8xf32>, tensor<4x8xf32>, !profuse.list, tensor<2xf32>) {
  %s = "profuse.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 0>, stops = array<i64: 2>, steps = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %u = "profuse.expand_dims"(%x) {axes = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
  %c:2 = "profuse.chunk"(%x) {chunks = 2 : i64} : (tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %r = "profuse.reshape"(%u) {shape = array<i64: 4, 8>} : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
  %l = "profuse.list_construct"(%c#0, %c#1) : (tensor<2x8xf32>, tensor<2x8xf32>) -> !profuse.list
  %k = "profuse.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  return %s, %u, %c#0, %r, %l, %k : tensor<2x8xf32>, tensor<1x4x8xf32>, tensor<2x8xf32>, tensor<4x8xf32>, !profuse.list, tensor<2xf32>
}

// Bytes and halves are compiled here, on the CPU too.
// CHECK-LABEL: func.func @bytes(
// CHECK-NEXT:    "profuse.fusion_group"
// CHECK-NEXT:    return
func.func @bytes(%x: tensor<4xui8>) -> tensor<4xui8> {
  %0 = "profuse.add"(%x, %x) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  return %0 : tensor<4xui8>
}

// CHECK-LABEL: func.func @halves(
// CHECK-NEXT:    "profuse.fusion_group"
// CHECK-NEXT:    return
func.func @halves(%x: tensor<4xf16, {device = "cpu"}>) -> tensor<4xf16> {
  %0 = "profuse.exp"(%x) : (tensor<4xf16, {device = "cpu"}>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}
