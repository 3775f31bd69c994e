// RUN: profuse-opt %s -p fuse-loops --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t
// RUN: profuse-opt %s -p 'fuse-loops{whole=true}' --verify-each | FileCheck %s --check-prefix=WHOLE

// Loops whose rounds take less time in kernels of their own stay where they are (`round_costs`).
// Asked for, each becomes one kernel.

// STATS-DAG: 1 a loop runs round by round: transpose: kernels of each round are estimated to save 79 µs of it
// STATS-DAG: 1 a loop runs round by round: max: kernels of each round are estimated to save 39 µs of it
// STATS-DAG: 3 a loop runs round by round: concatenate: kernels of each round are estimated to save 46 µs of it
// STATS-DAG: 1 a loop runs round by round: mul: kernels of each round are estimated to save 20 µs of it

// A round that reads across rows.
// CHECK-LABEL: func.func @transposed(
// CHECK:         scf.for
// CHECK:           "profuse.transpose"
// WHOLE-LABEL: func.func @transposed(
// WHOLE-NOT:     scf.for
// WHOLE:         callee = @fusion_loop0_
// WHOLE:       func.func @small(
func.func @transposed(%x: tensor<512x512xf32>, %n: i64) -> tensor<512x512xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<512x512xf32>) : i64 {
    %b = "profuse.transpose"(%a) : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %s = "profuse.add"(%a, %b) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    scf.yield %s : tensor<512x512xf32>
  }
  return %r : tensor<512x512xf32>
}

// The same on a few elements: the calls of a kernel would take longer than the rounds.
// CHECK-LABEL: func.func @small(
// CHECK-NOT:     scf.for
// CHECK:         callee = @fusion_loop0_
func.func @small(%x: tensor<64x64xf32>, %n: i64) -> tensor<64x64xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<64x64xf32>) : i64 {
    %b = "profuse.transpose"(%a) : (tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = "profuse.add"(%a, %b) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    scf.yield %s : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// Rounds of elements, of any size: blocks of them go through all rounds in the cache.
// CHECK-LABEL: func.func @elementwise(
// CHECK-NOT:     scf.for
// CHECK:         callee = @fusion_loop0_
func.func @elementwise(%x: tensor<2048x2048xf32>, %n: i64) -> tensor<2048x2048xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<2048x2048xf32>) : i64 {
    %b = "profuse.tanh"(%a) : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
    %s = "profuse.add"(%a, %b) : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
    scf.yield %s : tensor<2048x2048xf32>
  }
  return %r : tensor<2048x2048xf32>
}

// A transposed factor of a product, which libraries take as it lies.
// CHECK-LABEL: func.func @factor(
// CHECK-NOT:     scf.for
// CHECK:         callee = @fusion_loop0_
func.func @factor(%x: tensor<512x512xf32>, %n: i64) -> tensor<512x512xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<512x512xf32>) : i64 {
    %b = "profuse.transpose"(%a) : (tensor<512x512xf32>) -> tensor<512x512xf32>
    %s = "profuse.matmul"(%a, %b) : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
    scf.yield %s : tensor<512x512xf32>
  }
  return %r : tensor<512x512xf32>
}

// A `while` whose rounds reduce an array of 1.5 MB.
// CHECK-LABEL: func.func @until(
// CHECK:         scf.while
// WHOLE-LABEL: func.func @until(
// WHOLE-NOT:     scf.while
// WHOLE:         callee = @fusion_loop0_
func.func @until(%x: tensor<768x512xf32>) -> tensor<768x512xf32> {
  %half = "profuse.constant"() {value = 5.000000e-01 : f64} : () -> f64
  %r = scf.while (%a = %x) : (tensor<768x512xf32>) -> tensor<768x512xf32> {
    %m = "profuse.max"(%a) : (tensor<768x512xf32>) -> tensor<f32>
    %above = "profuse.gt"(%m, %half) : (tensor<f32>, f64) -> tensor<i1>
    %test = "profuse.truth"(%above) : (tensor<i1>) -> i1
    scf.condition(%test) %a : tensor<768x512xf32>
  } do {
  ^bb0(%a: tensor<768x512xf32>):
    %b = "profuse.mul"(%a, %half) : (tensor<768x512xf32>, f64) -> tensor<768x512xf32>
    scf.yield %b : tensor<768x512xf32>
  }
  return %r : tensor<768x512xf32>
}

// A loop around such a loop stays as well; the loop beside it does not.
// CHECK-LABEL: func.func @nested(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             "profuse.concatenate"
// CHECK:           callee = @fusion_loop2_
func.func @nested(%x: tensor<256x256xf32>, %n: i64) -> tensor<256x256xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<256x256xf32>) : i64 {
    %p = scf.for %i = %zero to %n step %one iter_args(%b = %a) -> (tensor<256x256xf32>) : i64 {
      %left = "profuse.slice"(%b) {starts = array<i64: 0, 0>, stops = array<i64: 256, 128>} : (tensor<256x256xf32>) -> tensor<256x128xf32>
      %right = "profuse.slice"(%b) {starts = array<i64: 0, 128>, stops = array<i64: 256, 256>} : (tensor<256x256xf32>) -> tensor<256x128xf32>
      %joined = "profuse.concatenate"(%right, %left) {axis = 1 : i64} : (tensor<256x128xf32>, tensor<256x128xf32>) -> tensor<256x256xf32>
      scf.yield %joined : tensor<256x256xf32>
    }
    %q = scf.for %i = %zero to %n step %one iter_args(%b = %p) -> (tensor<256x256xf32>) : i64 {
      %e = "profuse.tanh"(%b) : (tensor<256x256xf32>) -> tensor<256x256xf32>
      scf.yield %e : tensor<256x256xf32>
    }
    scf.yield %q : tensor<256x256xf32>
  }
  return %r : tensor<256x256xf32>
}

// A round that writes a part of an array: kernels of a round would copy all of it.
// CHECK-LABEL: func.func @parts(
// CHECK-NOT:     scf.for
// CHECK:         callee = @fusion_loop0_
func.func @parts(%x: tensor<512x512xf32>, %n: i64) -> tensor<512x512xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %copy = "profuse.copy"(%x) : (tensor<512x512xf32>) -> tensor<512x512xf32>
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %copy) -> (tensor<512x512xf32>) : i64 {
    %sum = "profuse.sum"(%a) {axes = array<i64: 0>} : (tensor<512x512xf32>) -> tensor<512xf32>
    %new = "profuse.pick_scatter"(%a, %sum, %t) {index = -9223372036854775808 : i64} : (tensor<512x512xf32>, tensor<512xf32>, i64) -> tensor<512x512xf32>
    scf.yield %new : tensor<512x512xf32>
  }
  return %r : tensor<512x512xf32>
}

// Sizes that follow from a number of the round: in kernels of a round such an op has no place.
// CHECK-LABEL: func.func @cut(
// CHECK-NOT:     scf.for
// CHECK:         callee = @fusion_loop0_
func.func @cut(%x: tensor<400000xf32>, %n: i64) -> tensor<f32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %all = "profuse.sum"(%x) : (tensor<400000xf32>) -> tensor<f32>
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %all) -> (tensor<f32>) : i64 {
    %part = "profuse.slice"(%x, %t) {starts = array<i64: 0>, stops = array<i64: -9223372036854775808>} : (tensor<400000xf32>, i64) -> !profuse.tensor
    %some = "profuse.sum"(%part) : (!profuse.tensor) -> tensor<f32>
    %most = "profuse.max"(%x) : (tensor<400000xf32>) -> tensor<f32>
    %b = "profuse.add"(%some, %most) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    scf.yield %b : tensor<f32>
  }
  return %r : tensor<f32>
}

// Numbers that follow from sizes are known, and so is the size of what they cut.
// CHECK-LABEL: func.func @halves(
// CHECK:         scf.for
// CHECK:           "profuse.concatenate"
func.func @halves(%x: tensor<256x256xf32>, %n: i64) -> tensor<256x256xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %two = "profuse.constant"() {value = 2 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<256x256xf32>) : i64 {
    %rows = "profuse.dim"(%a) {axis = 0 : i64} : (tensor<256x256xf32>) -> i64
    %half = "profuse.floor_div"(%rows, %two) : (i64, i64) -> i64
    %high = "profuse.slice"(%a, %half) {starts = array<i64: 0>, stops = array<i64: -9223372036854775808>} : (tensor<256x256xf32>, i64) -> tensor<128x256xf32>
    %joined = "profuse.concatenate"(%high, %high) {axis = 0 : i64} : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<256x256xf32>
    scf.yield %joined : tensor<256x256xf32>
  }
  return %r : tensor<256x256xf32>
}

// An argument that does not lie as its rows are read.
// CHECK-LABEL: func.func @layout(
// CHECK:         scf.for
func.func @layout(%x: tensor<256x256xf32>, %y: tensor<256x256xf32, {strides = ["1", "256"]}>, %n: i64) -> tensor<256x256xf32> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<256x256xf32>) : i64 {
    %s = "profuse.mul"(%a, %y) : (tensor<256x256xf32>, tensor<256x256xf32, {strides = ["1", "256"]}>) -> tensor<256x256xf32>
    scf.yield %s : tensor<256x256xf32>
  }
  return %r : tensor<256x256xf32>
}
