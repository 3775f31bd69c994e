// RUN: profuse-opt %s -p 'insert-guards{dynamic=true stable-sizes=2:40}' --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t

// STATS-DAG: sizes are guarded to fit as they have so far: add: {{.*}}((s0 + 1) // 2){{.*}}(s0 // 2)

// R1.40: what only fits for even sizes is guarded to have one: half of it is a symbol.
// CHECK-LABEL: func.func @even(
// CHECK:         "profuse.dynamic_guard"(%{{.*}}) {types = [tensor<?xf32, {dims = ["2*k1"],
// CHECK-LABEL: func.func private @fusion_0(
// CHECK-SAME:    -> tensor<?xf32, {dims = ["k1"]}>
func.func @even(%x: tensor<6xf32>) -> tensor<3xf32> {
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_0} : (tensor<6xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
func.func private @fusion_0(%x: tensor<6xf32, {strides = ["1"]}>) -> tensor<3xf32> {
  %0 = "profuse.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 0>, stops = array<i64: -9223372036854775807>, steps = array<i64: 2>} : (tensor<6xf32, {strides = ["1"]}>) -> tensor<3xf32>
  %1 = "profuse.slice"(%x) {axes = array<i64: 0>, starts = array<i64: 1>, stops = array<i64: -9223372036854775807>, steps = array<i64: 2>} : (tensor<6xf32, {strides = ["1"]}>) -> tensor<3xf32>
  %2 = "profuse.add"(%0, %1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %2 : tensor<3xf32>
}

// A size that no specialisation has seen change stays literal from the start if it is that small.
// CHECK-LABEL: func.func @pairs(
// CHECK:         "profuse.dynamic_guard"(%{{.*}}) {types = [tensor<?x2xf32, {dims = ["s0", "2"],
func.func @pairs(%x: tensor<40x2xf32>) -> tensor<40x2xf32> {
  %0 = "profuse.fusion_group"(%x) {callee = @fusion_1} : (tensor<40x2xf32>) -> tensor<40x2xf32>
  return %0 : tensor<40x2xf32>
}
func.func private @fusion_1(%x: tensor<40x2xf32, {strides = ["2", "1"]}>) -> tensor<40x2xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<40x2xf32, {strides = ["2", "1"]}>) -> tensor<40x2xf32>
  return %0 : tensor<40x2xf32>
}
