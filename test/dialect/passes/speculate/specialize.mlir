// RUN: profuse-opt %s -p specialize --verify-each | FileCheck %s

// R1.37: values take the recorded types; what was not observed is inferred; observers go.
// CHECK-LABEL: func.func @types(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf32, {device = "cpu", strides = ["8", "1"]}>, %[[Y:.*]]: !profuse.tensor)
// CHECK-SAME:    -> tensor<4x8xf32>
// CHECK-NEXT:    %[[T:.*]] = "profuse.tanh"(%[[X]]) : ({{.*}}) -> tensor<4x8xf32>
// CHECK-NEXT:    return %[[T]] : tensor<4x8xf32>
func.func @types(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4x8xf32, {device = "cpu", strides = ["8", "1"]}>} : (!profuse.tensor) -> !profuse.tensor
  %t = "profuse.tanh"(%p) : (!profuse.tensor) -> !profuse.tensor
  "profuse.profile_counter"() : () -> ()
  return %t : !profuse.tensor
}

// Several observers of one value are merged (R1.19): sizes 3 and 4 give an unknown one.
// CHECK-LABEL: func.func @merged(
// CHECK-SAME:    %{{.*}}: tensor<?x8xf32>)
func.func @merged(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<3x8xf32>} : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.profile"(%x) {site = 1 : i64, profiled_type = tensor<4x8xf32>} : (!profuse.tensor) -> !profuse.tensor
  return %p, %q : !profuse.tensor, !profuse.tensor
}

// A type that is there already is merged as well.
// CHECK-LABEL: func.func @refined(
// CHECK-SAME:    %{{.*}}: tensor<4x?xf32>)
func.func @refined(%x: tensor<4x7xf32>) -> tensor<4x7xf32> {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4x8xf32>} : (tensor<4x7xf32>) -> tensor<4x7xf32>
  return %p : tensor<4x7xf32>
}

// An observer that was never hit leaves its value bare, whatever could be inferred (R1.20).
// CHECK-LABEL: func.func @never_run(
// CHECK:         scf.if
// CHECK-NEXT:      "profuse.exp"(%{{.*}}) : (tensor<4xf32>) -> !profuse.tensor
// CHECK:         return
func.func @never_run(%x: !profuse.tensor, %c: i1) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4xf32>} : (!profuse.tensor) -> !profuse.tensor
  %r = scf.if %c -> !profuse.tensor {
    %e = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    %q = "profuse.profile"(%e) {site = 1 : i64} : (!profuse.tensor) -> !profuse.tensor
    %s = "profuse.sqrt"(%q) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %s : !profuse.tensor
  } else {
    scf.yield %p : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// What scf ties together has one type: all that is carried, yielded and returned.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32>, %{{.*}}: i64) -> tensor<4xf32>
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %[[X]]) -> (tensor<4xf32>)
// CHECK-NEXT:      %[[T:.*]] = "profuse.tanh"(%[[A]]) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:      scf.yield %[[T]] : tensor<4xf32>
func.func @loop(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %p = "profuse.profile"(%a) {site = 0 : i64, profiled_type = tensor<4xf32>} : (!profuse.tensor) -> !profuse.tensor
    %t = "profuse.tanh"(%p) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %t : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// A loop whose state grows: the size that changes is not known.
// CHECK-LABEL: func.func @while(
// CHECK-SAME:    %{{.*}}: tensor<?xf32>, %{{.*}}: i1) -> tensor<?xf32>
// CHECK:         scf.while (%{{.*}} = %{{.*}}) : (tensor<?xf32>) -> tensor<?xf32>
// CHECK:         ^bb0(%[[B:.*]]: tensor<?xf32>):
// CHECK-NEXT:      scf.yield %[[B]] : tensor<?xf32>
func.func @while(%x: !profuse.tensor, %c: i1) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<3xf32>} : (!profuse.tensor) -> !profuse.tensor
  %r = scf.while (%a = %p) : (!profuse.tensor) -> !profuse.tensor {
    scf.condition(%c) %a : !profuse.tensor
  } do {
  ^bb0(%b: !profuse.tensor):
    %q = "profuse.profile"(%b) {site = 1 : i64, profiled_type = tensor<4xf32>} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %q : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// What rounds make is in C order, whatever NumPy's first array is: so is that with which the loop
// begins. The argument keeps its own layout, also where a round reads it.
// CHECK-LABEL: func.func @in_order(
// CHECK-SAME:    %[[X:.*]]: tensor<4x8xf64, {device = "cpu", strides = ["1", "4"]}>
// CHECK:         %[[C:.*]] = "profuse.copy"(%[[X]]) : ({{.*}}) -> tensor<4x8xf64, {device = "cpu", strides = "contiguous"}>
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %[[C]]) -> (tensor<4x8xf64, {device = "cpu", strides = "contiguous"}>)
// CHECK:           "profuse.add"(%[[A]], %[[X]])
func.func @in_order(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %p = "profuse.profile"(%a) {site = 0 : i64, profiled_type = tensor<4x8xf64, {device = "cpu", strides = ["?", "?"]}>} : (!profuse.tensor) -> !profuse.tensor
    %q = "profuse.profile"(%x) {site = 1 : i64, profiled_type = tensor<4x8xf64, {device = "cpu", strides = ["1", "4"]}>} : (!profuse.tensor) -> !profuse.tensor
    %s = "profuse.add"(%p, %q) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %s : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// A view of what the loop carries has the memory of the array before.
// CHECK-LABEL: func.func @views(
// CHECK-NOT:     profuse.copy
// CHECK:         return
func.func @views(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %p = "profuse.profile"(%a) {site = 0 : i64, profiled_type = tensor<8x8xf64, {device = "cpu", strides = ["1", "8"]}>} : (!profuse.tensor) -> !profuse.tensor
    %s = "profuse.transpose"(%p) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %s : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// Where an op writes, no array is put in the place of another one.
// CHECK-LABEL: func.func @writes(
// CHECK-SAME:    %[[X:[a-z0-9]+]]:
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %[[X]])
func.func @writes(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %p = "profuse.profile"(%a) {site = 0 : i64, profiled_type = tensor<8x8xf64, {device = "cpu", strides = ["1", "8"]}>} : (!profuse.tensor) -> !profuse.tensor
    %s = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %s : !profuse.tensor
  }
  %own = "profuse.copy"(%x) : (!profuse.tensor) -> !profuse.tensor
  %w = "profuse.copy_"(%own, %one) : (!profuse.tensor, i64) -> !profuse.tensor
  return %r : !profuse.tensor
}

// Where NumPy keeps the order of the array, the transposed one is carried, and what rounds compute
// element by element is transposed. What else reads it reads a view.
// CHECK-LABEL: func.func @turned(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<4x8xf64, {device = "cpu", strides = ["1", "4"]}>
// CHECK:         %[[T:.*]] = "profuse.transpose"(%[[X]])
// CHECK:         %[[C:.*]] = "profuse.copy"(%[[T]]) : ({{.*}}) -> tensor<8x4xf64, {device = "cpu", strides = "contiguous"}>
// CHECK:         %[[V:.*]] = "profuse.transpose"({{.*}}) {{.*}} -> tensor<8x1xf64>
// CHECK:         %[[R:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %[[C]])
// CHECK:           %[[B:.*]] = "profuse.transpose"(%[[A]])
// CHECK:           %[[M:.*]] = "profuse.matmul"(%[[B]],
// CHECK:           %[[U:.*]] = "profuse.mean"(%[[M]])
// CHECK:           %[[E:.*]] = "profuse.add"(%[[A]], %[[U]])
// CHECK:           %[[S:.*]] = "profuse.mul"(%[[E]], %[[V]])
// CHECK-NEXT:      scf.yield %[[S]]
// CHECK:         %[[K:.*]] = "profuse.transpose"(%[[R]])
// CHECK:         return %[[K]]
func.func @turned(%x: !profuse.tensor, %v: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %p = "profuse.profile"(%a) {site = 0 : i64, profiled_type = tensor<4x8xf64, {device = "cpu", strides = ["1", "4"]}>} : (!profuse.tensor) -> !profuse.tensor
    %q = "profuse.profile"(%v) {site = 1 : i64, profiled_type = tensor<8xf64, {device = "cpu", strides = ["1"]}>} : (!profuse.tensor) -> !profuse.tensor
    %m = "profuse.matmul"(%p, %q) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %u = "profuse.mean"(%m) : (!profuse.tensor) -> !profuse.tensor
    %e = "profuse.add"(%p, %u) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %s = "profuse.mul"(%e, %q) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %s : !profuse.tensor
  }
  return %r : !profuse.tensor
}
