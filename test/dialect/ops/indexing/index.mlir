// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @parts
func.func @parts(%x: tensor<4x?xf32>, %n: i64) {
  // CHECK-NEXT: "profuse.slice"(%arg0) {axes = array<i64: 0>, starts = array<i64: 1>, stops = array<i64: 3>}
  %0 = "profuse.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, stops = array<i64: 3>} : (tensor<4x?xf32>) -> tensor<2x?xf32>
  // CHECK-NEXT: "profuse.pick"(%arg0) {axis = 0 : i64, index = -1 : i64} : (tensor<4x?xf32>) -> tensor<?xf32>
  %1 = "profuse.pick"(%x) {axis = 0 : i64, index = -1} : (tensor<4x?xf32>) -> tensor<?xf32>
  // CHECK-NEXT: "profuse.pick"(%arg0, %arg1)
  %2 = "profuse.pick"(%x, %n) {index = -9223372036854775808} : (tensor<4x?xf32>, i64) -> tensor<?xf32>
  // CHECK-NEXT: %{{.*}}:2 = "profuse.split"(%arg0) {sections = 2 : i64} : (tensor<4x?xf32>) -> (tensor<2x?xf32>, tensor<2x?xf32>)
  %3, %4 = "profuse.split"(%x) {sections = 2} : (tensor<4x?xf32>) -> (tensor<2x?xf32>, tensor<2x?xf32>)
  // CHECK-NEXT: "profuse.windows"(%arg0) {axes = array<i64: 0>, shape = array<i64: 3>} : (tensor<4x?xf32>) -> tensor<2x?x3xf32>
  %5 = "profuse.windows"(%x) {axes = array<i64: 0>, shape = array<i64: 3>} : (tensor<4x?xf32>) -> tensor<2x?x3xf32>
  return
}
