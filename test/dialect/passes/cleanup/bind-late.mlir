// RUN: profuse-opt %s -p bind-late | FileCheck %s
// RUN: profuse-opt %s -p canonicalize-profuse | FileCheck %s
// RUN: profuse-opt %s -p typed-rewrites | FileCheck %s

// CHECK-LABEL: func.func @sum
// CHECK:         "profuse.sum"(%{{.*}}) {axes = array<i64: 0>, keepdims = true} : (tensor<4x8xf32>) -> !profuse.tensor
func.func @sum(%x: tensor<4x8xf32>) -> !profuse.tensor {
  %axes = "profuse.constant"() {value = 0 : i64} : () -> i64
  %keep = "profuse.constant"() {value = true} : () -> i1
  %0 = "profuse.late"(%x, %axes, %keep) {op = "sum", names = ["axes", "keepdims"]} : (tensor<4x8xf32>, i64, i1) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// What is left out has its default; a dtype is written as such (A9).
// CHECK-LABEL: func.func @others
// CHECK:         "profuse.sum"(%{{.*}}) : (!profuse.tensor) -> !profuse.tensor
// CHECK:         "profuse.cast"(%{{.*}}) {dtype = f32} : (!profuse.tensor) -> !profuse.tensor
// CHECK:         "profuse.transpose"(%{{.*}}) {perm = array<i64: 1, 0>} : (!profuse.tensor) -> !profuse.tensor
// CHECK:         :2 = "profuse.chunk"(%{{.*}}) {axis = 1 : i64, chunks = 2 : i64}
func.func @others(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %none = "profuse.constant"() {value = unit} : () -> !profuse.ints
  %0 = "profuse.late"(%x, %none) {op = "sum", names = ["axes"]} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  %f32 = "profuse.constant"() {value = 11 : i64} : () -> i64
  %1 = "profuse.late"(%x, %f32) {op = "cast", names = ["dtype"]} : (!profuse.tensor, i64) -> !profuse.tensor
  %perm = "profuse.constant"() {value = array<i64: 1, 0>} : () -> !profuse.ints
  %2 = "profuse.late"(%x, %perm) {op = "transpose", names = ["perm"]} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %two = "profuse.constant"() {value = 2 : i64} : () -> i64
  %3:2 = "profuse.late"(%x, %one, %two) {op = "chunk", names = ["axis", "chunks"]} : (!profuse.tensor, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  return %0, %1, %2, %3#0, %3#1 : !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// It stays late: values of the run, and what stands for one; attributes that the op does not take.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-4: "profuse.late"
func.func @stays(%x: tensor<4x8xf32>, %k: i1) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0 = "profuse.late"(%x, %k) {op = "sum", names = ["keepdims"]} : (tensor<4x8xf32>, i1) -> !profuse.tensor
  %keep = "profuse.constant"(%k) {value = true} : (i1) -> i1
  %1 = "profuse.late"(%x, %keep) {op = "sum", names = ["keepdims"]} : (tensor<4x8xf32>, i1) -> !profuse.tensor
  %two = "profuse.constant"() {value = 2 : i64} : () -> i64
  %2 = "profuse.late"(%x, %two) {op = "sum", names = ["axes"]} : (tensor<4x8xf32>, i64) -> !profuse.tensor
  %many = "profuse.constant"() {value = 99 : i64} : () -> i64
  %3 = "profuse.late"(%x, %many) {op = "cast", names = ["dtype"]} : (tensor<4x8xf32>, i64) -> !profuse.tensor
  return %0, %1, %2, %3 : !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor
}
