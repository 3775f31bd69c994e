// RUN: %{python} %S/../lower.py loops %s | FileCheck %s
// RUN: %{python} %S/../lower.py llvm %s | FileCheck %s --check-prefix=LLVM

// Each round writes a row of its own, and reads what no round writes.
// CHECK-LABEL: // rows
// CHECK:         scf.for %[[I:.*]] = %c0 to %c400
// CHECK:           memref.store %{{.*}}, %{{.*}}[%[[I]], %{{.*}}]
// CHECK:         } {profuse.independent}
// LLVM-LABEL:  // rows
// LLVM:          define internal void @rows({{.*}})
// LLVM:            call void @rows_rounds0_launch({{.*}}, i64 400, double {{.*}})
// LLVM:          define internal void @rows_rounds0({{.*}}ptr noalias
// LLVM:          define internal void @rows_rounds0_part(ptr %0, i64 %1, i64 %2)
// LLVM:            call void @rows_rounds0({{.*}}, i64 %1, i64 %2)
// LLVM:          define internal void @rows_rounds0_launch(
// LLVM:            call void @profuse_run_chunks(ptr @rows_rounds0_part
func.func @rows(%x: tensor<400x400xf64, {strides = "contiguous"}>) -> tensor<400x400xf64> {
  %xc = "profuse.copy"(%x) : (tensor<400x400xf64, {strides = "contiguous"}>) -> tensor<400x400xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 400 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<400x400xf64>) : i64 {
    %v = "profuse.pick"(%a, %i) {index = -9223372036854775808 : i64} : (tensor<400x400xf64>, i64) -> tensor<400xf64>
    %e = "profuse.exp"(%v) : (tensor<400xf64>) -> tensor<400xf64>
    %w = "profuse.pick_scatter"(%a, %e, %i) {index = -9223372036854775808 : i64} : (tensor<400x400xf64>, tensor<400xf64>, i64) -> tensor<400x400xf64>
    scf.yield %w : tensor<400x400xf64>
  }
  return %r : tensor<400x400xf64>
}

// What would take less than two chunks stays where it is.
// CHECK-LABEL: // short
// CHECK:         {{.*}}profuse.independent
// LLVM-LABEL:  // short
// LLVM-NOT:      launch
// LLVM-LABEL:  // forbidden
func.func private @short(%x: tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// Places that data name are tested in each round. A chunk notes what is forbidden in a byte of its
// own, and says so at its end; it does nothing if another one has said so. The caller looks behind
// all chunks.
// CHECK-LABEL: // forbidden
// CHECK:         scf.for
// CHECK:           arith.ori
// CHECK:         } {{{.*}}profuse.independent}
// LLVM:          define internal void @forbidden(
// LLVM:            fcmp oge double
// LLVM-NEXT:       br i1
// LLVM:            store i8 0, ptr %[[AT:.*]], align
// LLVM-NEXT:       call void @forbidden_rounds[[K:[0-9]]]_launch(ptr
// LLVM-NEXT:       %[[FLAG:.*]] = load i8, ptr %[[AT]]
// LLVM-NEXT:       icmp eq i8 %[[FLAG]], 0
// LLVM:          define internal void @forbidden_rounds[[K]](
// LLVM:            %[[BYTE:.*]] = alloca i8
// LLVM:            store i8 0, ptr %[[BYTE]]
// LLVM:            load i8, ptr %[[BYTE]]
// LLVM:            store i8 1, ptr %1
// LLVM-NEXT:       ret void
func.func private @forbidden(%x: tensor<8xf64, {strides = "contiguous"}>, %at: tensor<?xi64, {dims = ["s0"], strides = "contiguous"}>, %z: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}> {
  %zc = "profuse.copy"(%z) : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.dim"(%z) {axis = 0 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %zc) -> (tensor<?xf64, {dims = ["s0"]}>) : i64 {
    %k = "profuse.pick"(%at, %i) {index = -9223372036854775808 : i64} : (tensor<?xi64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<i64>
    %v = "profuse.pick"(%x, %k) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, tensor<i64>) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"]}>, tensor<f64>, i64) -> tensor<?xf64, {dims = ["s0"]}>
    scf.yield %w : tensor<?xf64, {dims = ["s0"]}>
  }
  return %r : tensor<?xf64, {dims = ["s0"]}>
}

// A loop of unknown size is there twice, and its rounds are not: a chunk has a number of its own for
// the sum of a row.
// CHECK-LABEL: // sums
// LLVM-LABEL:  // sums
// LLVM:          define internal void @sums(
// LLVM:            fcmp oge double
// LLVM:          define internal void @sums_rounds[[S:[0-9]]](
// LLVM:            alloca double
// LLVM:            store double 0.000000e+00
// LLVM:          define internal void @sums_rounds[[S]]_part(
func.func private @sums(%x: tensor<?x?xf64, {dims = ["s0", "s1"], strides = "contiguous"}>) -> tensor<?x?xf64, {dims = ["s0", "s1"]}> {
  %xc = "profuse.copy"(%x) : (tensor<?x?xf64, {dims = ["s0", "s1"], strides = "contiguous"}>) -> tensor<?x?xf64, {dims = ["s0", "s1"]}>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<?x?xf64, {dims = ["s0", "s1"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<?x?xf64, {dims = ["s0", "s1"]}>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<?x?xf64, {dims = ["s0", "s1"], strides = "contiguous"}>, i64) -> tensor<?xf64, {dims = ["s1"]}>
    %s = "profuse.sum"(%v) {axes = array<i64: 0>, keepdims = false} : (tensor<?xf64, {dims = ["s1"]}>) -> tensor<f64>
    %e = "profuse.div"(%v, %s) : (tensor<?xf64, {dims = ["s1"]}>, tensor<f64>) -> tensor<?xf64, {dims = ["s1"]}>
    %w = "profuse.pick_scatter"(%a, %e, %i) {index = -9223372036854775808 : i64} : (tensor<?x?xf64, {dims = ["s0", "s1"]}>, tensor<?xf64, {dims = ["s1"]}>, i64) -> tensor<?x?xf64, {dims = ["s0", "s1"]}>
    scf.yield %w : tensor<?x?xf64, {dims = ["s0", "s1"]}>
  }
  return %r : tensor<?x?xf64, {dims = ["s0", "s1"]}>
}
