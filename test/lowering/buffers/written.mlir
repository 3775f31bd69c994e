// RUN: %{python} %S/../lower.py loops %s in-place | FileCheck %s
// RUN: %{python} %S/../lower.py llvm %s in-place | FileCheck %s --check-prefix=LLVM

// Only the copy reads the input: it is left out where input and output are one array. How far the
// rounds go is known before anything is written, so nothing has to be kept.
// CHECK-LABEL: // to_a_number
// CHECK-NEXT:  // workspace 0
// CHECK-NEXT:  // in place ((0, 0),)
// CHECK:       func.func @to_a_number(%[[A:[a-z0-9]+]]: memref<8xf64>, %{{.*}}: memref<i64>, %[[OUT:[a-z0-9]+]]: memref<8xf64>
// CHECK:         cf.assert
// CHECK:         %[[GIVEN:.*]] = memref.extract_aligned_pointer_as_index %[[A]]
// CHECK:         %[[MADE:.*]] = memref.extract_aligned_pointer_as_index %[[OUT]]
// CHECK:         %[[APART:.*]] = arith.cmpi ne, %[[GIVEN]], %[[MADE]]
// CHECK:         scf.if %[[APART]] {
// CHECK:           memref.load %[[A]]
// CHECK:         }
// CHECK-NOT:     cf.assert
// CHECK-NOT:     memref.load %[[A]]
// CHECK:         return
// LLVM-LABEL:  define void @to_a_number_entry
// LLVM-NOT:      memcpy
// LLVM:          ret void
func.func @to_a_number(%x: tensor<8xf64, {strides = "contiguous"}>, %n: i64) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%a, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %w = "profuse.add"(%v, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %b = "profuse.pick_scatter"(%a, %w, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %b : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// Places that data decide may be wrong behind writes: the entry keeps the array, and gives it back
// if the run is void.
// CHECK-LABEL: // to_places
// CHECK-NEXT:  // workspace 64*((8*s0 + 63) // 64)
// CHECK-NEXT:  // in place ((0, 0),)
// LLVM-LABEL:  define void @to_places_entry
// LLVM:          %[[SAME:.*]] = icmp eq i64
// LLVM:          br i1 %[[SAME]]
// LLVM:          call void @llvm.memcpy
// LLVM:          call void @to_places
// LLVM:          %[[VOID:.*]] = load i1
// LLVM:          br i1 %[[VOID]]
// LLVM:          br i1 %[[SAME]]
// LLVM:          call void @llvm.memcpy
func.func private @to_places(%x: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, %p: tensor<5xi64, {strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}> {
  %xc = "profuse.copy"(%x) : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 5 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<?xf64, {dims = ["s0"]}>) : i64 {
    %t = "profuse.pick"(%p, %i) {index = -9223372036854775808 : i64} : (tensor<5xi64, {strides = "contiguous"}>, i64) -> tensor<i64>
    %k = "profuse.item"(%t) {dtype = i64} : (tensor<i64>) -> i64
    %v = "profuse.pick"(%a, %k) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"]}>, i64) -> tensor<f64>
    %w = "profuse.add"(%v, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %b = "profuse.pick_scatter"(%a, %w, %k) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"]}>, tensor<f64>, i64) -> tensor<?xf64, {dims = ["s0"]}>
    scf.yield %b : tensor<?xf64, {dims = ["s0"]}>
  }
  return %r : tensor<?xf64, {dims = ["s0"]}>
}

// A second loop reads the input as it was: it stays as it is.
// CHECK-LABEL: // read_again
// CHECK:       // in place ()
// CHECK-NOT:   extract_aligned_pointer
func.func private @read_again(%x: tensor<8xf64, {strides = "contiguous"}>) -> (tensor<8xf64>, tensor<8xf64>) {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %one to %n step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %k = "profuse.sub"(%i, %one) : (i64, i64) -> i64
    %v = "profuse.pick"(%a, %k) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %b = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %b : tensor<8xf64>
  }
  %s = "profuse.add"(%x, %r) : (tensor<8xf64, {strides = "contiguous"}>, tensor<8xf64>) -> tensor<8xf64>
  return %r, %s : tensor<8xf64>, tensor<8xf64>
}
