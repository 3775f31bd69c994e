// RUN: profuse-opt -p to-gpu %s | FileCheck %s
// RUN: profuse-opt -p to-gpu,gpu-to-nvvm %s | FileCheck %s --check-prefix=NVVM
// RUN: profuse-opt -p to-gpu,gpu-to-nvvm --emit ptx %s | FileCheck %s --check-prefix=PTX

// Two nested loops with independent rounds are one grid: 42 threads, whose index is divided by the
// length of the inner loop. Zeros are stored first, in the same way.
// CHECK-LABEL: func.func private @scaled(
// CHECK-SAME:  Launch(kernel='scaled_step0', grid=('1', '1', '1'), block=('128', '1', '1'), arguments=(('output', 0),), shared='0')
// CHECK-SAME:  Launch(kernel='scaled_step1', grid=('1', '1', '1'), block=('128', '1', '1'), arguments=(('scalar', 1), ('input', 0), ('output', 0)), shared='0')
// CHECK:       gpu.func @scaled_step1(%[[K:.*]]: f64, %[[X:.*]]: memref<?xf64>, %[[Y:.*]]: memref<?xf64>) kernel
// CHECK-NOT:     profuse.flag
// CHECK:         %[[ALL:.*]] = arith.constant 42 : index
// CHECK:         scf.for %[[T:.*]] = %{{.*}} to %[[ALL]] step
// CHECK:           arith.remui %[[T]], %c7
// CHECK:           arith.divui %[[T]], %c7
// CHECK-NOT:       scf.for
// CHECK:           memref.load %[[X]]
// CHECK:           arith.mulf %{{.*}}, %[[K]]
// CHECK:           memref.store %{{.*}}, %[[Y]]
// NVVM-LABEL:  llvm.func @scaled_step1(
// NVVM-NOT:      scf.
// PTX-LABEL:   .entry scaled_step1(
// PTX:           mul.rn.f64
// PTX:           st.global
func.func @scaled(%x: tensor<6x7xf64, {strides = "contiguous"}>, %k: f64) -> tensor<6x7xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 6 : i64} : () -> i64
  %m = "profuse.constant"() {value = 7 : i64} : () -> i64
  %none = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %y = "profuse.full"(%none) {dtype = f64, shape = array<i64: 6, 7>} : (tensor<f64>) -> tensor<6x7xf64>
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %y) -> (tensor<6x7xf64>) : i64 {
    %q = scf.for %j = %zero to %m step %one iter_args(%b = %a) -> (tensor<6x7xf64>) : i64 {
      %row = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<6x7xf64, {strides = "contiguous"}>, i64) -> tensor<7xf64>
      %v = "profuse.pick"(%row, %j) {index = -9223372036854775808 : i64} : (tensor<7xf64>, i64) -> tensor<f64>
      %w = "profuse.mul"(%v, %k) : (tensor<f64>, f64) -> tensor<f64>
      %old = "profuse.pick"(%b, %i) {index = -9223372036854775808 : i64} : (tensor<6x7xf64>, i64) -> tensor<7xf64>
      %new = "profuse.pick_scatter"(%old, %w, %j) {index = -9223372036854775808 : i64} : (tensor<7xf64>, tensor<f64>, i64) -> tensor<7xf64>
      %c = "profuse.pick_scatter"(%b, %new, %i) {index = -9223372036854775808 : i64} : (tensor<6x7xf64>, tensor<7xf64>, i64) -> tensor<6x7xf64>
      scf.yield %c : tensor<6x7xf64>
    }
    scf.yield %q : tensor<6x7xf64>
  }
  return %r : tensor<6x7xf64>
}

// An index may be out of range: one thread clears the flag, the others leave if it is set, and an
// assertion that fails sets it and ends the thread.
// CHECK-LABEL: func.func private @picked(
// CHECK-SAME:  Launch(kernel='picked_step0', grid=('1', '1', '1'), block=('1', '1', '1'), arguments=(('output', 1),), shared='0')
// CHECK:       gpu.func @picked_step0(%[[F:.*]]: memref<?xi8>)
// CHECK:         memref.store %c0_i8, %[[F]][%c0]
// CHECK:       gpu.func @picked_step2(%[[F:.*]]: memref<?xi8>, {{.*}}) kernel attributes {{{.*}}profuse.flag = 0 : i64
// CHECK:         %[[SET:.*]] = memref.load %[[F]][%c0]
// CHECK:         %[[GO:.*]] = arith.cmpi eq, %[[SET]], %c0_i8
// CHECK:         scf.if %[[GO]]
// CHECK:           scf.for
// CHECK:             cf.assert
// CHECK-NOT:       llvm.
// NVVM-LABEL:  llvm.func @picked_step2(
// NVVM-SAME:     %[[F:.*]]: !llvm.ptr<1> {llvm.noalias}, %{{.*}}: !llvm.ptr<1> {llvm.noalias}, %{{.*}}: !llvm.ptr<1> {llvm.noalias}, %{{.*}}: !llvm.ptr<1>
// NVVM:          llvm.cond_br %{{.*}} weights([65536, 1]), ^{{.*}}, ^[[VOID:bb[0-9]+]]
// NVVM:        ^[[VOID]]:
// NVVM-NEXT:     llvm.store %{{.*}}, %[[F]] : i8, !llvm.ptr<1>
// NVVM-NEXT:     llvm.return
// PTX-LABEL:   .entry picked_step2(
// PTX:           ld.global{{.*}}b8
// PTX:           st.global.b8
func.func private @picked(%x: tensor<6xf64, {strides = "contiguous"}>, %at: tensor<200xi64, {strides = "contiguous"}>) -> tensor<200xf64> {
  %none = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %xc = "profuse.full"(%none) {dtype = f64, shape = array<i64: 200>} : (tensor<f64>) -> tensor<200xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 200 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<200xf64>) : i64 {
    %k = "profuse.pick"(%at, %i) {index = -9223372036854775808 : i64} : (tensor<200xi64, {strides = "contiguous"}>, i64) -> tensor<i64>
    %v = "profuse.take"(%x, %k) {axis = 0 : i64} : (tensor<6xf64, {strides = "contiguous"}>, tensor<i64>) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<200xf64>, tensor<f64>, i64) -> tensor<200xf64>
    scf.yield %w : tensor<200xf64>
  }
  return %r : tensor<200xf64>
}

// The grid follows the size, a step of the call is a parameter, and a row of a round is the
// thread's own.
// CHECK-LABEL: func.func private @rows(
// CHECK-SAME:  Launch(kernel='rows_step0', grid=('min(((32*s0 + 127) // 128), 65536)', '1', '1')
// CHECK-SAME:  Launch(kernel='rows_step1', grid=('min(((s0 + 127) // 128), 65536)', '1', '1'), block=('128', '1', '1'), arguments=(('size', 's0'), {{.*}}('stride', 0, 0)
// CHECK:         memref.alloca() : memref<32xf64, #gpu.address_space<private>>
// PTX-LABEL:   .entry rows_step
// PTX:           .local
func.func private @rows(%x: tensor<?x32xf64, {dims = ["s0", "32"], strides = ["?", "1"]}>) -> tensor<?x32xf64, {dims = ["s0", "32"]}> {
  %xc = "profuse.copy"(%x) : (tensor<?x32xf64, {dims = ["s0", "32"], strides = ["?", "1"]}>) -> tensor<?x32xf64, {dims = ["s0", "32"]}>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<?x32xf64, {dims = ["s0", "32"], strides = ["?", "1"]}>) -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<?x32xf64, {dims = ["s0", "32"]}>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<?x32xf64, {dims = ["s0", "32"], strides = ["?", "1"]}>, i64) -> tensor<32xf64>
    %e = "profuse.exp"(%v) : (tensor<32xf64>) -> tensor<32xf64>
    %s = "profuse.sum"(%e) {axes = array<i64: 0>, keepdims = false} : (tensor<32xf64>) -> tensor<f64>
    %q = "profuse.div"(%e, %s) : (tensor<32xf64>, tensor<f64>) -> tensor<32xf64>
    %w = "profuse.pick_scatter"(%a, %q, %i) {index = -9223372036854775808 : i64} : (tensor<?x32xf64, {dims = ["s0", "32"]}>, tensor<32xf64>, i64) -> tensor<?x32xf64, {dims = ["s0", "32"]}>
    scf.yield %w : tensor<?x32xf64, {dims = ["s0", "32"]}>
  }
  return %r : tensor<?x32xf64, {dims = ["s0", "32"]}>
}
