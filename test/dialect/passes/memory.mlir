// R3.17: no pass moves a read across a write, merges two, or drops a write.
// RUN: profuse-opt %s -p 'cse-profuse,fold,canonicalize-profuse,dce' --verify-each | FileCheck %s
// RUN: profuse-opt %s -p 'form-fusions{min-size=1}' --verify-each | FileCheck %s --check-prefix=FUSE

// Two sums with a write between them are two; nothing about the write is dropped or constant.
// CHECK-LABEL: func.func @reads
// CHECK:         %[[Y:.*]] = "profuse.neg"
// CHECK:         %[[A:.*]] = "profuse.sum"(%[[Y]])
// CHECK:         "profuse.put_"(%[[Y]], %{{.*}}, %{{.*}})
// CHECK:         %[[B:.*]] = "profuse.sum"(%[[Y]])
// CHECK:         return %[[A]], %[[B]]
// FUSE-LABEL: func.func @reads
// FUSE:         %[[G:.*]]:2 = "profuse.fusion_group"(%{{.*}}) {callee = @fusion_0}
// FUSE:         "profuse.put_"(%[[G]]#0, %{{.*}}, %{{.*}})
// FUSE:         %[[B:.*]] = "profuse.fusion_group"(%[[G]]#0)
// FUSE:         return %[[G]]#1, %[[B]]
func.func @reads(%x: tensor<4xf32>, %i: i64) -> (tensor<f32>, tensor<f32>) {
  %y = "profuse.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %a = "profuse.sum"(%y) : (tensor<4xf32>) -> tensor<f32>
  %0 = "profuse.put_"(%y, %i, %i) {index = -9223372036854775808} : (tensor<4xf32>, i64, i64) -> tensor<4xf32>
  %b = "profuse.sum"(%y) : (tensor<4xf32>) -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}

// Memory that is written is no constant, and not merged with what is equal before.
// CHECK-LABEL: func.func @fresh
// CHECK-COUNT-2: "profuse.full"
// CHECK:         "profuse.put_"
func.func @fresh(%i: i64) -> (tensor<2xf32>, tensor<2xf32>) {
  %c = "profuse.constant"() {value = 1.0 : f64} : () -> f64
  %a = "profuse.full"(%c) {shape = array<i64: 2>, dtype = f32} : (f64) -> tensor<2xf32>
  %b = "profuse.full"(%c) {shape = array<i64: 2>, dtype = f32} : (f64) -> tensor<2xf32>
  %0 = "profuse.put_"(%a, %i, %i) {index = -9223372036854775808} : (tensor<2xf32>, i64, i64) -> tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}

// neg(neg(x)) is x only while x is what it was.
// CHECK-LABEL: func.func @twice
// CHECK:         %[[A:.*]] = "profuse.neg"
// CHECK:         "profuse.put_"
// CHECK:         %[[R:.*]] = "profuse.neg"(%[[A]])
// CHECK:         return %[[R]]
func.func @twice(%x: tensor<4xf32>, %i: i64) -> tensor<4xf32> {
  %y = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %a = "profuse.neg"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "profuse.put_"(%y, %i, %i) {index = -9223372036854775808} : (tensor<4xf32>, i64, i64) -> tensor<4xf32>
  %b = "profuse.neg"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}

// A view of memory that is written stays a view: a group would return a copy.
// FUSE-LABEL: func.func @view
// FUSE:         "profuse.flip"
// FUSE-NEXT:    "profuse.put_"
func.func @view(%x: tensor<4xf32>, %i: i64) -> tensor<4xf32> {
  %y = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %f = "profuse.flip"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %0 = "profuse.put_"(%f, %i, %i) {index = -9223372036854775808} : (tensor<4xf32>, i64, i64) -> tensor<4xf32>
  %b = "profuse.neg"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
