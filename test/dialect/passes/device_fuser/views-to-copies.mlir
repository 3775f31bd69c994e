// RUN: profuse-opt %s -p views-to-copies --verify-each | FileCheck %s
// RUN: profuse-opt %s -p views-to-copies,copies-to-views --verify-each | FileCheck %s --check-prefix=BACK

// R3.11: views become copies, in nested blocks as well. Strides of a view are not those of a copy.
// R3.12: outside of groups they become views again, all of them.
// CHECK-LABEL: func.func @views(
// CHECK-SAME:    %[[X:.*]]: tensor<4x6xf32>, %[[N:.*]]: i64, %[[C:.*]]: i1)
// CHECK-NEXT:    %[[A:.*]] = "profuse.reshape_copy"(%[[X]], %[[N]]) {implicit = true, shape = array<i64: -9223372036854775808, -1>} : (tensor<4x6xf32>, i64) -> tensor<?x?xf32>
// CHECK-NEXT:    %[[B:.*]] = "profuse.unsqueeze_copy"(%[[A]]) {axes = array<i64: 0>, implicit = true} : (tensor<?x?xf32>) -> tensor<1x?x?xf32>
// CHECK-NEXT:    %[[R:.*]] = scf.if
// CHECK-NEXT:      %[[D:.*]] = "profuse.squeeze_copy"(%[[B]]) {axes = array<i64: 0>, implicit = true}
// CHECK-NEXT:      scf.yield %[[D]]
// CHECK:         "profuse.transpose"
// BACK-LABEL:  func.func @views(
// BACK:          "profuse.reshape"(%{{.*}}, %{{.*}}) {shape = array<i64: -9223372036854775808, -1>}
// BACK-NEXT:     "profuse.expand_dims"(%{{.*}}) {axes = array<i64: 0>}
// BACK:            "profuse.squeeze"(%{{.*}}) {axes = array<i64: 0>}
// BACK-NOT:      _copy
func.func @views(%x: tensor<4x6xf32>, %n: i64, %c: i1) -> (tensor<?x?xf32, {strides = ["1", "?"]}>, tensor<?x?xf32>) {
  %0 = "profuse.reshape"(%x, %n) {shape = array<i64: -9223372036854775808, -1>} : (tensor<4x6xf32>, i64) -> tensor<?x?xf32, {strides = ["1", "4"]}>
  %1 = "profuse.expand_dims"(%0) {axes = array<i64: 0>} : (tensor<?x?xf32, {strides = ["1", "4"]}>) -> tensor<1x?x?xf32>
  %r = scf.if %c -> tensor<?x?xf32, {strides = ["1", "?"]}> {
    %2 = "profuse.squeeze"(%1) {axes = array<i64: 0>} : (tensor<1x?x?xf32>) -> tensor<?x?xf32, {strides = ["1", "?"]}>
    scf.yield %2 : tensor<?x?xf32, {strides = ["1", "?"]}>
  } else {
    %2 = "profuse.exp"(%x) : (tensor<4x6xf32>) -> tensor<?x?xf32, {strides = ["1", "?"]}>
    scf.yield %2 : tensor<?x?xf32, {strides = ["1", "?"]}>
  }
  %3 = "profuse.transpose"(%r) : (tensor<?x?xf32, {strides = ["1", "?"]}>) -> tensor<?x?xf32>
  return %r, %3 : tensor<?x?xf32, {strides = ["1", "?"]}>, tensor<?x?xf32>
}

// With a later in-place write to the operand, to the view, or to another view, the op stays.
// CHECK-LABEL: func.func @written(
// CHECK-NOT:     _copy
// CHECK:         return
func.func @written(%x: tensor<4x6xf32>) -> tensor<24xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "profuse.reshape"(%0) {shape = array<i64: 24>} : (tensor<4x6xf32>) -> tensor<24xf32>
  %2 = "profuse.neg_"(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %1 : tensor<24xf32>
}
// CHECK-LABEL: func.func @written_view(
// CHECK-NOT:     _copy
// CHECK:         return
func.func @written_view(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<1x4x6xf32>) {
  %0 = "profuse.exp"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "profuse.reshape"(%0) {shape = array<i64: 24>} : (tensor<4x6xf32>) -> tensor<24xf32>
  %2 = "profuse.expand_dims"(%0) {axes = array<i64: 0>} : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
  %3 = "profuse.neg_"(%1) : (tensor<24xf32>) -> tensor<24xf32>
  return %0, %2 : tensor<4x6xf32>, tensor<1x4x6xf32>
}

// What is written before that, and not any more, is written all the same; other memory does not count.
// CHECK-LABEL: func.func @other_memory(
// CHECK:         "profuse.reshape"(
// CHECK:         "profuse.reshape_copy"(
func.func @other_memory(%x: tensor<4x6xf32>) -> (tensor<24xf32>, tensor<24xf32>) {
  %0 = "profuse.exp"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = "profuse.exp"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = "profuse.neg_"(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = "profuse.reshape"(%0) {shape = array<i64: 24>} : (tensor<4x6xf32>) -> tensor<24xf32>
  %4 = "profuse.reshape"(%1) {shape = array<i64: 24>} : (tensor<4x6xf32>) -> tensor<24xf32>
  return %3, %4 : tensor<24xf32>, tensor<24xf32>
}

// A view whose sizes are known at run time alone.
// CHECK-LABEL: func.func @late(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[S:.*]]: !profuse.ints)
// CHECK-NEXT:    %[[T:.*]] = "profuse.constant"() {value = true} : () -> i1
// CHECK-NEXT:    "profuse.late"(%[[X]], %[[S]], %[[T]]) {names = ["shape", "implicit"], op = "reshape_copy"}
// CHECK:         "profuse.late"(%[[X]], %[[S]]) {names = ["axes"], op = "sum"}
// BACK-LABEL:  func.func @late(
// BACK-SAME:     %[[X:.*]]: !profuse.tensor, %[[S:.*]]: !profuse.ints)
// BACK:          "profuse.late"(%[[X]], %[[S]]) {names = ["shape"], op = "reshape"}
func.func @late(%x: !profuse.tensor, %s: !profuse.ints) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.late"(%x, %s) {op = "reshape", names = ["shape"]} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  %1 = "profuse.late"(%x, %s) {op = "sum", names = ["axes"]} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}
