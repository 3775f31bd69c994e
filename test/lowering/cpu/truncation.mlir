// RUN: %{python} %S/../lower.py llvm %s skylake | FileCheck %s

// An int of a float is made by one instruction, and only what it gives is tested.
// CHECK-LABEL: // count
// CHECK:         %[[X:.*]] = insertelement <2 x double> poison, double %{{.*}}, i64 0
// CHECK:         %[[K:.*]] = call i64 @llvm.x86.sse2.cvttsd2si64(<2 x double> %[[X]])
// CHECK:         icmp ne i64 %[[K]], -9223372036854775808
// CHECK-NOT:     fptosi
// CHECK:         and i64 %[[K]], 3
// CHECK:         ret void
func.func @count(%x: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<4xi64> {
  %start = "profuse.constant"() {value = dense<0> : tensor<4xi64>} : () -> tensor<4xi64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %four = "profuse.constant"() {value = 4 : i64} : () -> i64
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %start) -> (tensor<4xi64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<f64>
    %int = "profuse.item"(%v) {dtype = i64} : (tensor<f64>) -> i64
    %k = "profuse.remainder"(%int, %four) : (i64, i64) -> i64
    %old = "profuse.pick"(%a, %k) {index = -9223372036854775808 : i64} : (tensor<4xi64>, i64) -> tensor<i64>
    %new = "profuse.add"(%old, %one) : (tensor<i64>, i64) -> tensor<i64>
    %b = "profuse.pick_scatter"(%a, %new, %k) {index = -9223372036854775808 : i64} : (tensor<4xi64>, tensor<i64>, i64) -> tensor<4xi64>
    scf.yield %b : tensor<4xi64>
  }
  return %r : tensor<4xi64>
}
