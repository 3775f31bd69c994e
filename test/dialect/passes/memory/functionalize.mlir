// R3.1, R3.8: in-place ops on memory that the graph made become pure; others stay.
// RUN: profuse-opt %s -p functionalize --verify-each | FileCheck %s

// A write through a view of a view changes the base and what others see of it.
// CHECK-LABEL: func.func @views
// CHECK-NEXT:    %[[Y:.*]] = "profuse.neg"(%[[X:.*]]) :
// CHECK-NEXT:    %[[V:.*]] = "profuse.slice"(%[[Y]])
// CHECK-NEXT:    %[[T:.*]] = "profuse.transpose"(%[[V]]) {perm = array<i64: 1, 0>}
// CHECK-NEXT:    %[[M:.*]] = "profuse.mul"(%[[T]], %[[X]])
// CHECK-NEXT:    %[[C:.*]] = "profuse.conform"(%[[M]], %[[T]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.transpose"(%[[C]]) {perm = array<i64: 1, 0>}
// CHECK-NEXT:    %[[S:.*]] = "profuse.slice_scatter"(%[[Y]], %[[B]]) {starts = array<i64: 1>, stops = array<i64: 3>}
// CHECK-NEXT:    %[[F:.*]] = "profuse.flip"(%[[S]])
// CHECK-NEXT:    return %[[S]], %[[F]], %[[C]]
func.func @views(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %y = "profuse.neg"(%x) : (!profuse.tensor) -> !profuse.tensor
  %f = "profuse.flip"(%y) : (!profuse.tensor) -> !profuse.tensor
  %v = "profuse.slice"(%y) {starts = array<i64: 1>, stops = array<i64: 3>} : (!profuse.tensor) -> !profuse.tensor
  %t = "profuse.transpose"(%v) {perm = array<i64: 1, 0>} : (!profuse.tensor) -> !profuse.tensor
  %r = "profuse.mul_"(%t, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %y, %f, %r : !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// Branches hand the new contents out, the one that does not write the old ones.
// CHECK-LABEL: func.func @branch
// CHECK:         %[[Y:.*]] = "profuse.neg"
// CHECK:         %[[I:.*]] = scf.if %{{.*}} -> (!profuse.tensor) {
// CHECK:           %[[N:.*]] = "profuse.conform"
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         } else {
// CHECK-NEXT:      scf.yield %[[Y]]
// CHECK:         return %[[I]]
func.func @branch(%x: !profuse.tensor, %p: i1) -> !profuse.tensor {
  %y = "profuse.neg"(%x) : (!profuse.tensor) -> !profuse.tensor
  scf.if %p {
    %0 = "profuse.exp_"(%y) : (!profuse.tensor) -> !profuse.tensor
  }
  return %y : !profuse.tensor
}

// Loops carry them.
// CHECK-LABEL: func.func @loop
// CHECK:         %[[Y:.*]] = "profuse.neg"
// CHECK:         %[[L:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %[[Y]]) -> (!profuse.tensor)
// CHECK:           "profuse.add"(%[[A]], %{{.*}})
// CHECK:           %[[N:.*]] = "profuse.conform"
// CHECK-NEXT:      scf.yield %[[N]]
// CHECK:         return %[[L]]
func.func @loop(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %y = "profuse.neg"(%x) : (!profuse.tensor) -> !profuse.tensor
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  scf.for %i = %zero to %n step %one : i64 {
    %0 = "profuse.add_"(%y, %i) : (!profuse.tensor, i64) -> !profuse.tensor
  }
  return %y : !profuse.tensor
}

// Whether a reshape is a view hangs on the layout: the write stays.
// CHECK-LABEL: func.func @unknown_layout
// CHECK:         "profuse.exp_"
func.func @unknown_layout(%x: tensor<3x4xf32>) -> (tensor<3x4xf32>, !profuse.tensor) {
  %y = "profuse.neg"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %r = "profuse.reshape"(%y) {shape = array<i64: -1>} : (tensor<3x4xf32>) -> !profuse.tensor
  %0 = "profuse.exp_"(%y) : (tensor<3x4xf32>) -> !profuse.tensor
  return %y, %r : tensor<3x4xf32>, !profuse.tensor
}

// Of a copy, which is in C order, it is one.
// CHECK-LABEL: func.func @known_layout
// CHECK-NOT:     "profuse.exp_"
func.func @known_layout(%x: tensor<3x4xf32>) -> (tensor<3x4xf32>, !profuse.tensor) {
  %y = "profuse.copy"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %r = "profuse.reshape"(%y) {shape = array<i64: -1>} : (tensor<3x4xf32>) -> !profuse.tensor
  %0 = "profuse.exp_"(%y) : (tensor<3x4xf32>) -> !profuse.tensor
  return %y, %r : tensor<3x4xf32>, !profuse.tensor
}

// What a round makes is not what it has been handed, of which a view is read behind the write.
// CHECK-LABEL: func.func @new_in_each_round
// CHECK:         scf.for {{.*}} iter_args(%[[U:.*]] = %{{.*}}) -> (tensor<8xf32>)
// CHECK:           %[[NEW:.*]] = "profuse.copy"(%[[U]])
// CHECK:           %[[OLD:.*]] = "profuse.slice"(%[[U]])
// CHECK:           %[[ONE:.*]] = "profuse.slice_scatter"(%[[NEW]], %{{.*}})
// CHECK:           "profuse.mul"(%{{.*}}, %[[OLD]])
// CHECK:           %[[TWO:.*]] = "profuse.slice_scatter"(%[[ONE]], %{{.*}})
// CHECK:           scf.yield %[[TWO]]
func.func @new_in_each_round(%x: tensor<8xf32>, %n: i64) -> tensor<8xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%u = %x) -> (tensor<8xf32>) : i64 {
    %new = "profuse.copy"(%u) : (tensor<8xf32>) -> tensor<8xf32>
    %old = "profuse.slice"(%u) {starts = array<i64: 0>, stops = array<i64: 6>} : (tensor<8xf32>) -> tensor<6xf32>
    %part = "profuse.slice"(%new) {starts = array<i64: 1>, stops = array<i64: 7>} : (tensor<8xf32>) -> tensor<6xf32>
    %0 = "profuse.add_"(%part, %old) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %1 = "profuse.mul_"(%part, %old) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    scf.yield %new : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// What it has been handed may be what it writes: the write stays.
// CHECK-LABEL: func.func @handed_on
// CHECK:           "profuse.add_"
func.func @handed_on(%x: tensor<8xf32>, %n: i64) -> tensor<8xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %new = "profuse.copy"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%u = %x) -> (tensor<8xf32>) : i64 {
    %old = "profuse.slice"(%u) {starts = array<i64: 0>, stops = array<i64: 6>} : (tensor<8xf32>) -> tensor<6xf32>
    %part = "profuse.slice"(%new) {starts = array<i64: 1>, stops = array<i64: 7>} : (tensor<8xf32>) -> tensor<6xf32>
    %0 = "profuse.add_"(%part, %old) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    scf.yield %new : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
