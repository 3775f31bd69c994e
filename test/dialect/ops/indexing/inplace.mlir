// Ops that write, and what they become once they are pure: parsing, printing, inference.
// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @writes
func.func @writes(%x: tensor<3x4xf32>, %n: i64) -> tensor<3x4xf32> {
  // CHECK: "profuse.copy"(%{{.*}}) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = "profuse.copy"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  // CHECK: "profuse.add_"(%{{.*}}, %{{.*}}) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %0 = "profuse.add_"(%y, %x) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  // CHECK: "profuse.exp_"
  %1 = "profuse.exp_"(%y) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %row = "profuse.pick"(%y) {index = 1} : (tensor<3x4xf32>) -> tensor<4xf32>
  // CHECK: "profuse.put_"(%{{.*}}, %{{.*}}) {index = 2 : i64}
  %2 = "profuse.put_"(%row, %n) {index = 2} : (tensor<4xf32>, i64) -> tensor<4xf32>
  // CHECK: "profuse.put_"(%{{.*}}, %{{.*}}, %{{.*}}) {index = -9223372036854775808 : i64}
  %3 = "profuse.put_"(%row, %n, %n) {index = -9223372036854775808} : (tensor<4xf32>, i64, i64) -> tensor<4xf32>
  // CHECK: "profuse.copy_"(%{{.*}}, %{{.*}}) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %4 = "profuse.copy_"(%y, %row) : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  // CHECK: "profuse.copy_"(%{{.*}}, %{{.*}}) {strict = true}
  %5 = "profuse.copy_"(%y, %x) {strict = true} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// What a graph writes to at run-time indices is lent to it.
// CHECK-LABEL: func.func @borrows
func.func @borrows(%x: tensor<3x4xf32>, %v: tensor<4xf32>, %n: i64) -> tensor<3x4xf32> {
  // CHECK: "profuse.borrow"(%{{.*}}) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = "profuse.borrow"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %row = "profuse.pick"(%y, %n) {index = -9223372036854775808} : (tensor<3x4xf32>, i64) -> tensor<4xf32>
  %0 = "profuse.copy_"(%row, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @pure
func.func @pure(%x: tensor<3x4xf32>, %v: tensor<2x4xf32>, %row: tensor<4xf32>) {
  // CHECK: "profuse.conform"(%{{.*}}, %{{.*}}) {assign = true} : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %0 = "profuse.conform"(%row, %x) {assign = true} : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  // CHECK: "profuse.slice_scatter"(%{{.*}}, %{{.*}}) {starts = array<i64: 1>, stops = array<i64: 3>}
  %1 = "profuse.slice_scatter"(%x, %v) {starts = array<i64: 1>, stops = array<i64: 3>} : (tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  // CHECK: "profuse.pick_scatter"(%{{.*}}, %{{.*}}) {index = -1 : i64}
  %2 = "profuse.pick_scatter"(%x, %row) {index = -1} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return
}
