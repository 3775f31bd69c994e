// R1.24, R1.26: small rewrites across two ops, through observers.
// RUN: profuse-opt %s --pass-pipeline=peephole,dce --verify-each | FileCheck %s

// CHECK-LABEL: func.func @signs(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NEXT:    %[[A:.*]] = "profuse.sub"(%[[X]], %[[Y]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.add"(%[[X]], %[[Y]])
// CHECK-NEXT:    return %[[A]], %[[B]]
func.func @signs(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %n = "profuse.neg"(%y) : (tensor<4xf32>) -> tensor<4xf32>
  %p = "profuse.profile"(%n) {site = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %a = "profuse.add"(%x, %p) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = "profuse.sub"(%x, %n) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// Negation in a narrow dtype wraps before the sum widens.
// CHECK-LABEL: func.func @widths(
// CHECK-NEXT:    "profuse.neg"
// CHECK-NEXT:    "profuse.add"
func.func @widths(%x: tensor<4xi32>, %y: tensor<4xi8>) -> tensor<4xi32> {
  %n = "profuse.neg"(%y) : (tensor<4xi8>) -> tensor<4xi8>
  %a = "profuse.add"(%x, %n) : (tensor<4xi32>, tensor<4xi8>) -> tensor<4xi32>
  return %a : tensor<4xi32>
}

// CHECK-LABEL: func.func @sizes(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[N:.*]] = "profuse.size"(%[[X]])
// CHECK-NEXT:    return %[[N]]
func.func @sizes(%x: !profuse.tensor) -> i64 {
  %t = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %n = "profuse.size"(%t) : (!profuse.tensor) -> i64
  return %n : i64
}

// CHECK-LABEL: func.func @idle(
// CHECK-SAME:    %[[C:.*]]: i1, %[[X:.*]]: !profuse.tensor)
// CHECK-NEXT:    return %[[X]], %[[C]]
func.func @idle(%c: i1, %x: !profuse.tensor) -> (!profuse.tensor, i1) {
  %true = "profuse.constant"() {value = true} : () -> i1
  %false = "profuse.constant"() {value = false} : () -> i1
  %r:2 = scf.if %c -> (!profuse.tensor, i1) {
    scf.yield %x, %true : !profuse.tensor, i1
  } else {
    scf.yield %x, %false : !profuse.tensor, i1
  }
  return %r#0, %r#1 : !profuse.tensor, i1
}

// Gradients of every second window: of what is added to zeros, and is zero but for a slice, the slice is added.
// CHECK-LABEL: func.func @added_slices(
// CHECK-SAME:    %[[V:.*]]: tensor<2x3x4xf32>, %[[I:.*]]: tensor<6x1xi64>, %[[J:.*]]: tensor<4xi64>)
// CHECK:         %[[ROWS:.*]] = "profuse.slice"(%[[I]]) {axes = array<i64: 0>, starts = array<i64: 0>, steps = array<i64: 2>, stops = array<i64: -9223372036854775807>} : (tensor<6x1xi64>) -> tensor<3x1xi64>
// CHECK-NEXT:    %[[Y:.*]] = "profuse.index_add"(%{{.*}}, %[[V]], %[[ROWS]], %[[J]]) {axes = array<i64: 1, 2>}
// CHECK-NEXT:    return %[[Y]]
func.func @added_slices(%v: tensor<2x3x4xf32>, %i: tensor<6x1xi64>, %j: tensor<4xi64>) -> tensor<2x9x9xf32> {
  %zero = "profuse.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %x = "profuse.full"(%zero) {shape = array<i64: 2, 9, 9>} : (tensor<f32>) -> tensor<2x9x9xf32>
  %z = "profuse.full"(%zero) {shape = array<i64: 2, 6, 4>} : (tensor<f32>) -> tensor<2x6x4xf32>
  %s = "profuse.slice_scatter"(%z, %v) {axes = array<i64: 1>, starts = array<i64: 0>, steps = array<i64: 2>, stops = array<i64: -9223372036854775807>} : (tensor<2x6x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
  %y = "profuse.index_add"(%x, %s, %i, %j) {axes = array<i64: 1, 2>} : (tensor<2x9x9xf32>, tensor<2x6x4xf32>, tensor<6x1xi64>, tensor<4xi64>) -> tensor<2x9x9xf32>
  return %y : tensor<2x9x9xf32>
}

// Zeros that are added make 0.0 of -0.0, and what is no zero has to be added.
// CHECK-LABEL: func.func @added_zeros_count(
// CHECK-COUNT-3: profuse.index_add"({{.*}}tensor<6xf32>, tensor<6xi64>)
func.func @added_zeros_count(%v: tensor<3xf32>, %i: tensor<6xi64>, %a: tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
  %zero = "profuse.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %negative = "profuse.constant"() {value = dense<-0.0> : tensor<f32>} : () -> tensor<f32>
  %one = "profuse.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %x = "profuse.full"(%zero) {shape = array<i64: 9>} : (tensor<f32>) -> tensor<9xf32>
  %n = "profuse.full"(%negative) {shape = array<i64: 9>} : (tensor<f32>) -> tensor<9xf32>
  %z = "profuse.full"(%zero) {shape = array<i64: 6>} : (tensor<f32>) -> tensor<6xf32>
  %o = "profuse.full"(%one) {shape = array<i64: 6>} : (tensor<f32>) -> tensor<6xf32>
  %s = "profuse.slice_scatter"(%z, %v) {starts = array<i64: 0>, steps = array<i64: 2>, stops = array<i64: 6>} : (tensor<6xf32>, tensor<3xf32>) -> tensor<6xf32>
  %t = "profuse.slice_scatter"(%o, %v) {starts = array<i64: 0>, steps = array<i64: 2>, stops = array<i64: 6>} : (tensor<6xf32>, tensor<3xf32>) -> tensor<6xf32>
  %y0 = "profuse.index_add"(%a, %s, %i) {axes = array<i64: 0>} : (tensor<9xf32>, tensor<6xf32>, tensor<6xi64>) -> tensor<9xf32>
  %y1 = "profuse.index_add"(%n, %s, %i) {axes = array<i64: 0>} : (tensor<9xf32>, tensor<6xf32>, tensor<6xi64>) -> tensor<9xf32>
  %y2 = "profuse.index_add"(%x, %t, %i) {axes = array<i64: 0>} : (tensor<9xf32>, tensor<6xf32>, tensor<6xi64>) -> tensor<9xf32>
  return %y0, %y1, %y2 : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
}

// A slice along an axis that no index is for leaves the indices as they are; so does a bound of the run.
// CHECK-LABEL: func.func @other_slices(
// CHECK-COUNT-2: profuse.index_add"({{.*}}tensor<4x6xf32>, tensor<6xi64>)
func.func @other_slices(%v: tensor<2x6xf32>, %w: tensor<4x?xf32>, %i: tensor<6xi64>, %n: i64) -> (tensor<4x9xf32>, tensor<4x9xf32>) {
  %zero = "profuse.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %x = "profuse.full"(%zero) {shape = array<i64: 4, 9>} : (tensor<f32>) -> tensor<4x9xf32>
  %z = "profuse.full"(%zero) {shape = array<i64: 4, 6>} : (tensor<f32>) -> tensor<4x6xf32>
  %s = "profuse.slice_scatter"(%z, %v) {axes = array<i64: 0>, starts = array<i64: 0>, steps = array<i64: 2>, stops = array<i64: 4>} : (tensor<4x6xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
  %t = "profuse.slice_scatter"(%z, %w, %n) {axes = array<i64: 1>, starts = array<i64: 0>, stops = array<i64: -9223372036854775808>} : (tensor<4x6xf32>, tensor<4x?xf32>, i64) -> tensor<4x6xf32>
  %y0 = "profuse.index_add"(%x, %s, %i) {axes = array<i64: 1>} : (tensor<4x9xf32>, tensor<4x6xf32>, tensor<6xi64>) -> tensor<4x9xf32>
  %y1 = "profuse.index_add"(%x, %t, %i) {axes = array<i64: 1>} : (tensor<4x9xf32>, tensor<4x6xf32>, tensor<6xi64>) -> tensor<4x9xf32>
  return %y0, %y1 : tensor<4x9xf32>, tensor<4x9xf32>
}
