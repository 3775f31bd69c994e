// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// The element before the first one is the last one: only the first round asks for that, and the
// reads of the others lie side by side.
// CHECK-LABEL: // before
// CHECK:       func.func @before(%[[X:[a-z0-9]+]]: memref<?xf64>, %[[OUT:[a-z0-9]+]]: memref<?xf64>
// CHECK:         %[[N:.*]] = arith.minsi %{{.*}}, %c1
// CHECK:         scf.for %{{.*}} = %c0 to %[[N]]
// CHECK-NOT:       arith.cmpi
// CHECK-NOT:       arith.select
// CHECK:         }
// CHECK:         scf.for %[[I:.*]] = %[[N]] to
// CHECK-NOT:       arith.cmpi
// CHECK-NOT:       arith.select
// CHECK:           %[[V:.*]] = memref.load %[[X]][
// CHECK:           memref.store %[[V]], %[[OUT]][%[[I]]]
// CHECK:         }
func.func @before(%x: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}> {
  %o = "profuse.copy"(%x) : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %o) -> (tensor<?xf64, {dims = ["s0"]}>) : i64 {
    %k = "profuse.sub"(%i, %one) : (i64, i64) -> i64
    %v = "profuse.pick"(%x, %k) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<f64>
    %b = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"]}>, tensor<f64>, i64) -> tensor<?xf64, {dims = ["s0"]}>
    scf.yield %b : tensor<?xf64, {dims = ["s0"]}>
  }
  return %r : tensor<?xf64, {dims = ["s0"]}>
}

// The element behind the last one is the first one; a remainder takes no division.
// CHECK-LABEL: // behind
// CHECK-NOT:     arith.floordivsi
// CHECK:         scf.for %[[I:.*]] = %c0 to %c7
// CHECK-NOT:       arith.cmpi
// CHECK:           memref.store
// CHECK:         }
// CHECK:         memref.load %{{.*}}[%c0]
func.func private @behind(%x: tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64> {
  %o = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %o) -> (tensor<8xf64>) : i64 {
    %s = "profuse.add"(%i, %one) : (i64, i64) -> i64
    %k = "profuse.remainder"(%s, %n) : (i64, i64) -> i64
    %v = "profuse.pick"(%x, %k) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %b = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %b : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// A place that is the same in all rounds is tested before the loop, and only if there are rounds.
// CHECK-LABEL: // steady
// CHECK:         %[[IN:.*]] = arith.cmpi ult, %[[P:.*]], %c8_i64
// CHECK:         %[[TURNED:.*]] = arith.addi %[[P]], %c8_i64
// CHECK:         %[[AT:.*]] = arith.select %[[IN]], %[[P]], %[[TURNED]]
// CHECK:         %[[OUT:.*]] = arith.cmpi uge, %[[AT]], %c8_i64
// CHECK:         %[[ROUNDS:.*]] = arith.cmpi sgt, %[[N:.*]], %c0_i64
// CHECK:         %[[VOID:.*]] = arith.andi %[[OUT]], %[[ROUNDS]]
// CHECK:         %[[GOOD:.*]] = arith.xori %[[VOID]]
// CHECK:         cf.assert %[[GOOD]]
// CHECK:         scf.for
// CHECK-NOT:       arith.cmpi
// CHECK-NOT:       cf.assert
// CHECK:           arith.mulf
// CHECK:         }
func.func private @steady(%x: tensor<8xf64, {strides = "contiguous"}>, %p: i64, %n: i64) -> tensor<8xf64> {
  %o = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %o) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%a, %p) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %w = "profuse.mul"(%v, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %b = "profuse.pick_scatter"(%a, %w, %p) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %b : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// A place that counts down from a number, less another one: the middle does not ask.
// CHECK-LABEL: // fallen
// CHECK:         %[[REST:.*]] = arith.subi
// CHECK:         %[[FAR:.*]] = arith.addi %[[REST]], %c2305843009213693952
// CHECK:         %[[NEAR:.*]] = arith.cmpi ult, %[[FAR]], %c4611686018427387904
// CHECK:         %[[LAST:.*]] = arith.addi %[[REST]], %c1
// CHECK:         %[[FIRST:.*]] = arith.addi %[[REST]], %c-7
// CHECK:         arith.select %[[NEAR]]
// CHECK:         scf.for %{{.*}} = %c0 to %[[BEGIN:[a-z0-9]*]] step
// CHECK:           arith.cmpi ult
// CHECK:         scf.for %{{.*}} = %[[BEGIN]] to %[[END:[a-z0-9]*]] step
// CHECK-NOT:       arith.cmpi
// CHECK-NOT:       cf.assert
// CHECK:           memref.load
// CHECK-NOT:       arith.cmpi
// CHECK-NOT:       cf.assert
// CHECK:         scf.for %{{.*}} = %[[END]] to
// CHECK:           arith.cmpi ult
func.func private @fallen(%x: tensor<8xf64, {strides = "contiguous"}>, %p: i64, %w: i64, %n: i64) -> tensor<f64> {
  %start = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %c = "profuse.sub"(%p, %w) : (i64, i64) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %start) -> (tensor<f64>) : i64 {
    %k = "profuse.sub"(%c, %i) : (i64, i64) -> i64
    %v = "profuse.pick"(%x, %k) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %h = "profuse.mul"(%a, %a) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %b = "profuse.add"(%h, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %b : tensor<f64>
  }
  return %r : tensor<f64>
}

// A place below a number: if the number is no larger than the axis, no round asks for the axis.
// CHECK-LABEL: // fitting
// CHECK:         %[[FITS:.*]] = arith.cmpi ule, %{{.*}}, %c8_i64
// CHECK:         scf.if %[[FITS]] -> (f64) {
// CHECK:           scf.for
// CHECK:             arith.cmpi ult
// CHECK-NOT:         arith.cmpi ult
// CHECK:             memref.load %{{.*}}[%{{.*}}] : memref<8xf64>
// CHECK:         } else {
// CHECK:           scf.for
// CHECK:             arith.cmpi ult
// CHECK:             arith.cmpi ult
func.func private @fitting(%x: tensor<8xf64, {strides = "contiguous"}>, %p: tensor<?xi64, {dims = ["s0"], strides = "contiguous"}>, %n: i64) -> tensor<f64> {
  %start = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %false = "profuse.constant"() {value = false} : () -> i1
  %size = "profuse.dim"(%p) {axis = 0 : i64} : (tensor<?xi64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %size step %one iter_args(%a = %start) -> (tensor<f64>) : i64 {
    %v = "profuse.pick"(%p, %i) {index = -9223372036854775808 : i64} : (tensor<?xi64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<i64>
    %k = "profuse.item"(%v) {dtype = i64} : (tensor<i64>) -> i64
    %above = "profuse.ge"(%k, %zero) : (i64, i64) -> i1
    %within = scf.if %above -> (i1) {
      %below = "profuse.lt"(%k, %n) : (i64, i64) -> i1
      scf.yield %below : i1
    } else {
      scf.yield %false : i1
    }
    %b = scf.if %within -> (tensor<f64>) {
      %e = "profuse.pick"(%x, %k) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
      %h = "profuse.mul"(%a, %e) : (tensor<f64>, tensor<f64>) -> tensor<f64>
      scf.yield %h : tensor<f64>
    } else {
      scf.yield %a : tensor<f64>
    }
    scf.yield %b : tensor<f64>
  }
  return %r : tensor<f64>
}
