// RUN: profuse-opt %s -p fuse-loops --verify-each --stats 2>&1 | FileCheck %s

// A loop of arrays on one device is a group, as it is on the host; Python's numbers go anywhere.
// CHECK:       1 a loop runs round by round: scf.for: operands are on different devices: cpu, cuda:0
// CHECK:       func.func @scaled(
// CHECK-NOT:     scf.for
// CHECK:         "profuse.fusion_group"({{.*}}) {callee = @fusion_loop0_{{[0-9]+}}}
func.func @scaled(%x: tensor<8xf64, {device = "cuda:0"}>, %k: f64) -> tensor<8xf64, {device = "cuda:0"}> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %y = "profuse.copy"(%x) : (tensor<8xf64, {device = "cuda:0"}>) -> tensor<8xf64, {device = "cuda:0"}>
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %y) -> (tensor<8xf64, {device = "cuda:0"}>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {device = "cuda:0"}>, i64) -> tensor<f64, {device = "cuda:0"}>
    %w = "profuse.mul"(%v, %k) : (tensor<f64, {device = "cuda:0"}>, f64) -> tensor<f64, {device = "cuda:0"}>
    %q = "profuse.pick_scatter"(%a, %w, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {device = "cuda:0"}>, tensor<f64, {device = "cuda:0"}>, i64) -> tensor<8xf64, {device = "cuda:0"}>
    scf.yield %q : tensor<8xf64, {device = "cuda:0"}>
  }
  return %r : tensor<8xf64, {device = "cuda:0"}>
}

// Arrays of the host stay where they are, and so does the loop that reads them.
// CHECK:       func.func @mixed(
// CHECK:         scf.for
// CHECK-NOT:   profuse.fusion_group
func.func @mixed(%x: tensor<8xf64, {device = "cuda:0"}>, %w: tensor<8xf64, {device = "cpu"}>) -> tensor<8xf64, {device = "cuda:0"}> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %y = "profuse.copy"(%x) : (tensor<8xf64, {device = "cuda:0"}>) -> tensor<8xf64, {device = "cuda:0"}>
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %y) -> (tensor<8xf64, {device = "cuda:0"}>) : i64 {
    %v = "profuse.pick"(%w, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {device = "cpu"}>, i64) -> tensor<f64, {device = "cpu"}>
    %q = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {device = "cuda:0"}>, tensor<f64, {device = "cpu"}>, i64) -> tensor<8xf64, {device = "cuda:0"}>
    scf.yield %q : tensor<8xf64, {device = "cuda:0"}>
  }
  return %r : tensor<8xf64, {device = "cuda:0"}>
}
