// RUN: %{python} %S/lower.py linalg %s | FileCheck %s --check-prefix=LINALG
// RUN: %{python} %S/lower.py loops %s | FileCheck %s
// RUN: %{python} %S/lower.py llvm %s | FileCheck %s --check-prefix=LLVM

// Each round reads one array and writes into the other, which lies in the output; there are no
// temporaries and no copies in the loop.
// LINALG-LABEL: // stencil
// LINALG:         scf.for {{.*}} iter_args(%[[B:.*]] = %arg1) -> (tensor<?xf64>)
// LINALG:           tensor.extract_slice %arg0[0]
// LINALG:           tensor.insert_slice %{{.*}} into %[[B]][1]
// CHECK-LABEL:  // stencil
// CHECK-NEXT:   // workspace 0
// CHECK:        func.func @stencil(%[[A:.*]]: memref<?xf64>, %[[B:.*]]: memref<?xf64>, %{{.*}}: memref<i64>, %[[OUT:.*]]: memref<?xf64>, %{{.*}}: memref<i8>
// CHECK-NOT:      memref.alloc(
// CHECK:          scf.for
// CHECK:            memref.load %[[B]]
// CHECK-NEXT:       memref.store %{{.*}}, %[[OUT]]
// CHECK:          scf.for
// CHECK-NEXT:       scf.for
// CHECK-COUNT-3:      memref.load %[[A]]
// CHECK-NOT:          memref.load
// CHECK:              memref.store %{{.*}}, %[[OUT]]
// CHECK-NOT:      memref.store %{{.*}}, %[[A]]
// CHECK-NOT:      memref.store %{{.*}}, %[[B]]
// LLVM-LABEL:   // stencil
// LLVM:         define internal void @stencil(ptr %0, ptr noalias %1
// LLVM:         define void @stencil_entry(ptr %0)
// LLVM:           call void @stencil(
func.func @stencil(%a0: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, %b0: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, %n: i64) -> tensor<?xf64, {dims = ["s0"]}> {
  %bc = "profuse.copy"(%b0) : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf64, {dims = ["s0"]}>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%b = %bc) -> (tensor<?xf64, {dims = ["s0"]}>) : i64 {
    %s0 = "profuse.slice"(%a0) {starts = array<i64: -9223372036854775807>, stops = array<i64: -2>} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> !profuse.tensor
    %s1 = "profuse.slice"(%a0) {starts = array<i64: 1>, stops = array<i64: -1>} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> !profuse.tensor
    %s2 = "profuse.slice"(%a0) {starts = array<i64: 2>, stops = array<i64: -9223372036854775807>} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> !profuse.tensor
    %p = "profuse.add"(%s0, %s1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %q = "profuse.add"(%p, %s2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %b1 = "profuse.slice_scatter"(%b, %q) {starts = array<i64: 1>, stops = array<i64: -1>} : (tensor<?xf64, {dims = ["s0"]}>, !profuse.tensor) -> tensor<?xf64, {dims = ["s0"]}>
    scf.yield %b1 : tensor<?xf64, {dims = ["s0"]}>
  }
  return %r : tensor<?xf64, {dims = ["s0"]}>
}

// Places that follow from the index of the loop are known to be in range: nothing is checked, and
// there is no output for violations.
// CHECK-LABEL:  // shifted
// CHECK:        func.func @shifted(%{{.*}}: memref<8xf64>, %[[OUT:.*]]: memref<8xf64>, %{{.*}}: memref<?xi8>)
// CHECK:          scf.for %[[I:.*]] = %c1
// CHECK:            memref.load %[[OUT]]
// CHECK:            memref.store %{{.*}}, %[[OUT]][%[[I]]]
// CHECK-NOT:        arith.cmpi
// CHECK:          }
func.func @shifted(%x: tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %one to %eight step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %before = "profuse.sub"(%i, %one) : (i64, i64) -> i64
    %v = "profuse.pick"(%a, %before) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// Whether all rounds are in range is found out before the first one: if not, there is none.
// CHECK-LABEL:  // beyond
// CHECK:          %[[BAD:.*]] = arith.cmpi slt
// CHECK:          %[[END:.*]] = arith.select %{{.*}}, %c0{{.*}}, %{{.*}}
// CHECK:          scf.for %{{.*}} = %c0
// CHECK-NOT:        arith.cmpi
// CHECK:          }
func.func @beyond(%x: tensor<8xf64, {strides = "contiguous"}>, %y: tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %size = "profuse.dim"(%y) {axis = 0 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>) -> i64
  %r = scf.for %i = %zero to %size step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%y, %i) {index = -9223372036854775808 : i64} : (tensor<?xf64, {dims = ["s0"], strides = "contiguous"}>, i64) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// A while loop whose numbers are in registers; it ends if the run is void.
// CHECK-LABEL:  // until
// CHECK:          scf.while
// CHECK:            scf.condition
// CHECK-NOT:      memref.alloc(
func.func @until(%x: tensor<f64>, %most: f64) -> tensor<f64> {
  %xc = "profuse.copy"(%x) : (tensor<f64>) -> tensor<f64>
  %r = scf.while (%a = %x) : (tensor<f64>) -> tensor<f64> {
    %less = "profuse.lt"(%a, %most) : (tensor<f64>, f64) -> tensor<i1>
    %go = "profuse.truth"(%less) : (tensor<i1>) -> i1
    scf.condition(%go) %a : tensor<f64>
  } do {
  ^bb0(%a: tensor<f64>):
    %b = "profuse.add"(%a, %a) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %b : tensor<f64>
  }
  return %r : tensor<f64>
}
