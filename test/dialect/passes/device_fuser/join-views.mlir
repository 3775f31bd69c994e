// RUN: profuse-opt %s -p join-views --verify-each | FileCheck %s
// RUN: profuse-opt %s -p join-views,join-views --stats 2>&1 | FileCheck %s --check-prefix=STATS

// A second run finds nothing.
// STATS: join-views: 5 views-joined
// STATS-NOT: views-joined

// Outside of groups a view of a view stays.
// CHECK-LABEL: func.func @outside(
// CHECK-COUNT-2: "profuse.reshape"
// CHECK:         "profuse.cuda_group"
func.func @outside(%x: tensor<4x6xf32>, %n: i64) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0 = "profuse.reshape"(%x) {shape = array<i64: 24>} : (tensor<4x6xf32>) -> tensor<24xf32>
  %1 = "profuse.reshape"(%0) {shape = array<i64: 6, 4>} : (tensor<24xf32>) -> tensor<6x4xf32>
  %g = "profuse.cuda_group"(%1) {callee = @three} : (tensor<6x4xf32>) -> !profuse.tensor
  %h:2 = "profuse.cuda_group"(%1) {callee = @still_read} : (tensor<6x4xf32>) -> (!profuse.tensor, !profuse.tensor)
  %k = "profuse.cuda_group"(%1, %n) {callee = @unproven} : (tensor<6x4xf32>, i64) -> !profuse.tensor
  %l = "profuse.cuda_group"(%1) {callee = @of_symbols} : (tensor<6x4xf32>) -> !profuse.tensor
  %m = "profuse.cuda_group"(%1, %n) {callee = @sizes_of_the_last} : (tensor<6x4xf32>, i64) -> !profuse.tensor
  return %g, %h#0, %h#1, %k, %l, %m : !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// R3.48: three chained views are one.
// CHECK-LABEL: func.func private @three(
// CHECK-SAME:    %[[X:.*]]: tensor<6x4xf32>)
// CHECK-NEXT:    %[[T:.*]] = "profuse.tanh"(%[[X]])
// CHECK-NEXT:    %[[R:.*]] = "profuse.reshape"(%[[T]]) {shape = array<i64: 2, 12>} : (tensor<6x4xf32>) -> tensor<2x12xf32>
// CHECK-NEXT:    return %[[R]]
func.func private @three(%x: tensor<6x4xf32>) -> tensor<2x12xf32> {
  %t = "profuse.tanh"(%x) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %0 = "profuse.reshape"(%t) {shape = array<i64: 24>} : (tensor<6x4xf32>) -> tensor<24xf32>
  %1 = "profuse.reshape"(%0) {shape = array<i64: 3, -1>} : (tensor<24xf32>) -> tensor<3x8xf32>
  %2 = "profuse.reshape"(%1) {shape = array<i64: 2, 12>} : (tensor<3x8xf32>) -> tensor<2x12xf32>
  return %2 : tensor<2x12xf32>
}

// What something else reads stays, and only that.
// CHECK-LABEL: func.func private @still_read(
// CHECK-SAME:    %[[X:.*]]: tensor<6x4xf32>)
// CHECK-NEXT:    %[[A:.*]] = "profuse.reshape"(%[[X]]) {shape = array<i64: 24>}
// CHECK-NEXT:    %[[B:.*]] = "profuse.reshape_copy"(%[[X]]) {implicit = true, shape = array<i64: 8, 3>}
// CHECK-NEXT:    return %[[A]], %[[B]]
func.func private @still_read(%x: tensor<6x4xf32>) -> (tensor<24xf32>, tensor<8x3xf32>) {
  %0 = "profuse.reshape"(%x) {shape = array<i64: 24>} : (tensor<6x4xf32>) -> tensor<24xf32>
  %1 = "profuse.reshape_copy"(%0) {implicit = true, shape = array<i64: 8, 3>} : (tensor<24xf32>) -> tensor<8x3xf32>
  return %0, %1 : tensor<24xf32>, tensor<8x3xf32>
}

// A view that may raise an error is not passed over.
// CHECK-LABEL: func.func private @unproven(
// CHECK-COUNT-2: "profuse.reshape"
func.func private @unproven(%x: tensor<6x4xf32>, %n: i64) -> tensor<24xf32> {
  %0 = "profuse.reshape"(%x, %n) {shape = array<i64: -9223372036854775808, 4>} : (tensor<6x4xf32>, i64) -> tensor<?x4xf32>
  %1 = "profuse.reshape"(%0) {shape = array<i64: 24>} : (tensor<?x4xf32>) -> tensor<24xf32>
  return %1 : tensor<24xf32>
}

// Products of symbols are compared as well.
// CHECK-LABEL: func.func private @of_symbols(
// CHECK-SAME:    %[[X:.*]]: tensor
// CHECK-NEXT:    %[[R:.*]] = "profuse.reshape"(%[[X]]) {shape = array<i64: 2, -1>}
// CHECK-NEXT:    return
func.func private @of_symbols(%x: tensor<?x4xf32, {dims = ["a0", "4"]}>) -> tensor<2x?xf32, {dims = ["2", "2*a0"]}> {
  %0 = "profuse.reshape"(%x) {shape = array<i64: -1>} : (tensor<?x4xf32, {dims = ["a0", "4"]}>) -> tensor<?xf32, {dims = ["4*a0"]}>
  %1 = "profuse.reshape"(%0) {shape = array<i64: 2, -1>} : (tensor<?xf32, {dims = ["4*a0"]}>) -> tensor<2x?xf32, {dims = ["2", "2*a0"]}>
  return %1 : tensor<2x?xf32, {dims = ["2", "2*a0"]}>
}

// Sizes that the last view has from operands are its own.
// CHECK-LABEL: func.func private @sizes_of_the_last(
// CHECK-SAME:    %[[X:.*]]: tensor<6x4xf32>, %[[N:.*]]: i64)
// CHECK-NEXT:    %[[R:.*]] = "profuse.reshape"(%[[X]], %[[N]])
// CHECK-NEXT:    return
func.func private @sizes_of_the_last(%x: tensor<6x4xf32>, %n: i64) -> tensor<?xf32> {
  %0 = "profuse.reshape"(%x) {shape = array<i64: 2, 12>} : (tensor<6x4xf32>) -> tensor<2x12xf32>
  %1 = "profuse.reshape"(%0, %n) {shape = array<i64: -9223372036854775808>} : (tensor<2x12xf32>, i64) -> tensor<?xf32>
  return %1 : tensor<?xf32>
}
