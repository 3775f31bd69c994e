// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// All rounds of a row of 256 elements before the next row: it stays in the cache.
// CHECK-LABEL: // rows
// CHECK:         %[[N:.*]] = arith.index_cast
// CHECK:         memref.store
// CHECK:         scf.for %{{.*}} = %c0 to %c64 step %c1
// CHECK-NEXT:      scf.for %{{.*}} = %c0 to %[[N]] step %c1
// CHECK-NEXT:        scf.for %{{.*}} = %c0 to %c256 step %c1
// CHECK:               math.sqrt
func.func @rows(%x: tensor<64x256xf32, {strides = "contiguous"}>, %n: i64) -> tensor<64x256xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %c = "profuse.copy"(%x) : (tensor<64x256xf32, {strides = "contiguous"}>) -> tensor<64x256xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %c) -> (tensor<64x256xf32>) : i64 {
    %b = "profuse.sqrt"(%a) : (tensor<64x256xf32>) -> tensor<64x256xf32>
    scf.yield %b : tensor<64x256xf32>
  }
  return %r : tensor<64x256xf32>
}

// Rows of 8 elements: a round of one would wait for what the round before has stored. Blocks of 64
// rows, 512 elements, go through all rounds together.
// CHECK-LABEL: // short
// CHECK:         %[[N:.*]] = arith.index_cast
// CHECK:         memref.store
// CHECK:         scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK:           scf.for %[[FIRST:.*]] = %c0 to %c500 step %c64
// CHECK-NEXT:        %[[SUM:.*]] = arith.addi %[[FIRST]], %c64
// CHECK-NEXT:        %[[END:.*]] = arith.minsi %[[SUM]], %c500
// CHECK-NEXT:        scf.for %{{.*}} = %c0 to %[[N]] step %c1
// CHECK-NEXT:          scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c1
// CHECK-NEXT:            scf.for %{{.*}} = %c0 to %c8 step %c1
// CHECK:                   math.sqrt
func.func @short(%x: tensor<2x500x8xf32, {strides = "contiguous"}>, %n: i64) -> tensor<2x500x8xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %c = "profuse.copy"(%x) : (tensor<2x500x8xf32, {strides = "contiguous"}>) -> tensor<2x500x8xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %c) -> (tensor<2x500x8xf32>) : i64 {
    %b = "profuse.sqrt"(%a) : (tensor<2x500x8xf32>) -> tensor<2x500x8xf32>
    scf.yield %b : tensor<2x500x8xf32>
  }
  return %r : tensor<2x500x8xf32>
}
