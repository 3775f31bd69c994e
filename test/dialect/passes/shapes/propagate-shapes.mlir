// RUN: profuse-opt %s -p propagate-shapes --verify-each | FileCheck %s

// R2.10: types follow from those of the inputs: dtypes and ranks without any size.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    -> tensor<?x?xf32>
// CHECK:         "profuse.add"{{.*}} -> tensor<?x?xf32>
// CHECK:         "profuse.sum"{{.*}} -> tensor<?x1xf32>
func.func @forward(%x: tensor<?x?xf32>, %b: tensor<?xf32>) -> !profuse.tensor {
  %y = "profuse.add"(%x, %b) : (tensor<?x?xf32>, tensor<?xf32>) -> !profuse.tensor
  %s = "profuse.sum"(%y) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %r = "profuse.div"(%y, %s) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %r : !profuse.tensor
}

// A branch's result has what both sides agree on; the observer that forgot a type goes.
// CHECK-LABEL: func.func @branch(
// CHECK-NOT:     profuse.profile
// CHECK:         %[[R:.*]] = scf.if %{{.*}} -> (tensor<?x?xf32>)
// CHECK:         return %[[R]] : tensor<?x?xf32>
func.func @branch(%x: tensor<?x4xf32>, %c: i1) -> !profuse.tensor {
  %o = "profuse.profile"(%x) {site = 0 : i64} : (tensor<?x4xf32>) -> !profuse.tensor
  %r = scf.if %c -> !profuse.tensor {
    scf.yield %o : !profuse.tensor
  } else {
    %t = "profuse.transpose"(%x) : (tensor<?x4xf32>) -> !profuse.tensor
    scf.yield %t : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// What a loop carries has what holds before the first round and after each: here the rank alone.
// CHECK-LABEL: func.func @grows(
// CHECK-SAME:    %{{.*}}: tensor<?x4xf32>
// CHECK:         scf.for {{.*}} -> (tensor<?x4xf32>)
func.func @grows(%x: tensor<3x4xf32>, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %o = "profuse.profile"(%x) {site = 0 : i64} : (tensor<3x4xf32>) -> !profuse.tensor
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %o) -> (!profuse.tensor) : i64 {
    %w = "profuse.concatenate"(%v, %v) {axis = 0 : i64} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %w : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// A loop whose rounds change the rank is known by its dtype alone.
// CHECK-LABEL: func.func @deepens(
// CHECK:         scf.for {{.*}} -> (tensor<*xf32>)
func.func @deepens(%x: tensor<?xf32>, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %o = "profuse.profile"(%x) {site = 0 : i64} : (tensor<?xf32>) -> !profuse.tensor
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %o) -> (!profuse.tensor) : i64 {
    %w = "profuse.expand_dims"(%v) {axes = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %w : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// A while loop: its first block passes on what the second gets.
// CHECK-LABEL: func.func @until(
// CHECK:         scf.while {{.*}} : (tensor<?xf32>) -> tensor<?xf32>
func.func @until(%x: tensor<?xf32>) -> !profuse.tensor {
  %o = "profuse.profile"(%x) {site = 0 : i64} : (tensor<?xf32>) -> !profuse.tensor
  %r = scf.while (%v = %o) : (!profuse.tensor) -> !profuse.tensor {
    %s = "profuse.sum"(%v) : (!profuse.tensor) -> !profuse.tensor
    %c = "profuse.truth"(%s) : (!profuse.tensor) -> i1
    scf.condition(%c) %v : !profuse.tensor
  } do {
  ^bb0(%w: !profuse.tensor):
    %h = "profuse.floor"(%w) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %h : !profuse.tensor
  }
  return %r : !profuse.tensor
}
