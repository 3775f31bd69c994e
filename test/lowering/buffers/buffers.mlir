// RUN: %{python} %S/../lower.py linalg %s | FileCheck %s --check-prefix=LINALG
// RUN: %{python} %S/../lower.py loops %s | FileCheck %s
// RUN: %{python} %S/../lower.py llvm %s | FileCheck %s --check-prefix=LLVM

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

// Whether all rounds are in range is found out before the first one: if not, the run ends there,
// with a flag, and without a library's help.
// CHECK-LABEL:  // beyond
// CHECK:          arith.cmpi slt
// CHECK:          cf.assert
// CHECK:          scf.for %{{.*}} = %c0 to %arg5
// CHECK-NOT:        arith.cmpi
// CHECK:          }
// LLVM-LABEL:   // beyond
// LLVM-NOT:       @abort
// LLVM-NOT:       @puts
// LLVM:           define internal void @beyond({{.*}}) #[[LOOPS:[0-9]+]]
// LLVM:           br i1 %{{.*}}, label %{{.*}}, label %[[VOID:.*]], !prof
// LLVM:           [[VOID]]:
// LLVM-NEXT:      store i8 1, ptr
// LLVM-NEXT:      ret void
// LLVM:           attributes #[[LOOPS]] = { "profuse-loops" }
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

// A while loop whose numbers are in registers.
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

// A row that a round takes, changes in an element and puts back is not taken: two stores, no copy.
// CHECK-LABEL:  // rows
// CHECK:        func.func @rows(%{{.*}}: memref<6x8xf64>, %[[OUT:.*]]: memref<6x8xf64>,
// CHECK-COUNT-2:  scf.for
// CHECK:          scf.for %[[I:.*]] =
// CHECK-NOT:        memref.alloc
// CHECK:            memref.store %{{.*}}, %[[OUT]][%[[I]], %c2]
// CHECK-NEXT:       memref.load %[[OUT]][%[[I]], %c2]
// CHECK:            memref.store %{{.*}}, %[[OUT]][%[[I]], %c3]
// CHECK-NOT:        memref.load
// CHECK:          }
func.func @rows(%x: tensor<6x8xf64, {strides = "contiguous"}>) -> tensor<6x8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<6x8xf64, {strides = "contiguous"}>) -> tensor<6x8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %six = "profuse.constant"() {value = 6 : i64} : () -> i64
  %r = scf.for %i = %zero to %six step %one iter_args(%a = %xc) -> (tensor<6x8xf64>) : i64 {
    %row = "profuse.pick"(%a, %i) {index = -9223372036854775808 : i64} : (tensor<6x8xf64>, i64) -> tensor<8xf64>
    %v = "profuse.pick"(%row) {index = 1 : i64} : (tensor<8xf64>) -> tensor<f64>
    %row1 = "profuse.pick_scatter"(%row, %v) {index = 2 : i64} : (tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
    %a1 = "profuse.pick_scatter"(%a, %row1, %i) {index = -9223372036854775808 : i64} : (tensor<6x8xf64>, tensor<8xf64>, i64) -> tensor<6x8xf64>
    %w = "profuse.pick"(%row1) {index = 2 : i64} : (tensor<8xf64>) -> tensor<f64>
    %w2 = "profuse.mul"(%w, %w) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %row2 = "profuse.pick_scatter"(%row1, %w2) {index = 3 : i64} : (tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
    %a2 = "profuse.pick_scatter"(%a1, %row2, %i) {index = -9223372036854775808 : i64} : (tensor<6x8xf64>, tensor<8xf64>, i64) -> tensor<6x8xf64>
    scf.yield %a2 : tensor<6x8xf64>
  }
  return %r : tensor<6x8xf64>
}

// A product with a vector sums up rows in registers, four of them in one loop over the vector and
// then the ninth; that of a transposed matrix adds such rows, and the matrix is not copied.
// CHECK-LABEL:  // vectors
// CHECK:            scf.for %{{.*}} to %c8 step %c4
// CHECK:              scf.for {{.*}} to %c7 {{.*}} iter_args({{.*}}) -> (f64, f64, f64, f64)
// CHECK-COUNT-4:        arith.addf {{.*}} fastmath<reassoc,contract>
// CHECK:              scf.for {{.*}} to %c7 {{.*}} -> (f64)
// CHECK:                arith.mulf {{.*}} fastmath<contract>
// CHECK:                arith.addf {{.*}} fastmath<reassoc,contract>
// CHECK:            scf.for %{{.*}} to %c8 step %c4
// CHECK-NOT:            iter_args
// CHECK-COUNT-4:        arith.addf {{.*}} fastmath<contract>
// CHECK:            scf.for %[[COLUMN:.*]] = %c0 to %c7 step %c1
// CHECK:              memref.load %{{.*}}[%c8, %[[COLUMN]]] : memref<9x7xf64>
// CHECK:              arith.addf {{.*}} fastmath<contract>
// CHECK-NOT:      call @
func.func @vectors(%m: tensor<9x7xf64, {strides = "contiguous"}>, %x: tensor<7xf64, {strides = "contiguous"}>, %n: i64) -> tensor<7xf64> {
  %xc = "profuse.copy"(%x) : (tensor<7xf64, {strides = "contiguous"}>) -> tensor<7xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %t = "profuse.transpose"(%m) : (tensor<9x7xf64, {strides = "contiguous"}>) -> !profuse.tensor
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %xc) -> (tensor<7xf64>) : i64 {
    %p = "profuse.matmul"(%m, %a) : (tensor<9x7xf64, {strides = "contiguous"}>, tensor<7xf64>) -> !profuse.tensor
    %q = "profuse.matmul"(%t, %p) : (!profuse.tensor, !profuse.tensor) -> tensor<7xf64>
    scf.yield %q : tensor<7xf64>
  }
  return %r : tensor<7xf64>
}

// Large matrices are the library's, unless a row begins within another one.
// CHECK-LABEL:  // matrices
// CHECK:        func.func private @scipy_cblas_dgemm(
// CHECK:          scf.for
// CHECK:            scf.if
// CHECK:              call @scipy_cblas_dgemm(
// CHECK:            } else {
// CHECK-COUNT-3:      scf.for
// LLVM-LABEL:   // matrices
// LLVM:           call void @scipy_cblas_dgemm(i32 101, i32 111, i32 111,
func.func @matrices(%m: tensor<?x?xf64, {dims = ["s0", "s0"], strides = ["?", "1"]}>, %n: i64) -> tensor<?x?xf64, {dims = ["s0", "s0"]}> {
  %c = "profuse.copy"(%m) : (tensor<?x?xf64, {dims = ["s0", "s0"], strides = ["?", "1"]}>) -> tensor<?x?xf64, {dims = ["s0", "s0"]}>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %c) -> (tensor<?x?xf64, {dims = ["s0", "s0"]}>) : i64 {
    %p = "profuse.matmul"(%m, %a) : (tensor<?x?xf64, {dims = ["s0", "s0"], strides = ["?", "1"]}>, tensor<?x?xf64, {dims = ["s0", "s0"]}>) -> tensor<?x?xf64, {dims = ["s0", "s0"]}>
    scf.yield %p : tensor<?x?xf64, {dims = ["s0", "s0"]}>
  }
  return %r : tensor<?x?xf64, {dims = ["s0", "s0"]}>
}

// Functions are expanded beside a product of the library, too.
// CHECK-LABEL:  // matrices_and_exp
// CHECK:        func.func private @scipy_cblas_dgemm(
// CHECK:        func.func @matrices_and_exp(
// CHECK-NOT:      math.exp
// CHECK:          call @scipy_cblas_dgemm(
// CHECK-NOT:      math.exp
// CHECK-LABEL:  // choice
func.func @matrices_and_exp(%m: tensor<64x64xf64, {strides = "contiguous"}>, %n: i64) -> tensor<64x64xf64> {
  %c = "profuse.copy"(%m) : (tensor<64x64xf64, {strides = "contiguous"}>) -> tensor<64x64xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %c) -> (tensor<64x64xf64>) : i64 {
    %p = "profuse.matmul"(%m, %a) : (tensor<64x64xf64, {strides = "contiguous"}>, tensor<64x64xf64>) -> tensor<64x64xf64>
    %e = "profuse.exp"(%p) : (tensor<64x64xf64>) -> tensor<64x64xf64>
    scf.yield %e : tensor<64x64xf64>
  }
  return %r : tensor<64x64xf64>
}

// Of two numbers one is selected, of two arrays the memory.
// CHECK:          scf.for
// CHECK:            arith.select {{.*}} : f64
// CHECK:            arith.select {{.*}} : memref<8xf64>
func.func @choice(%x: tensor<8xf64, {strides = "contiguous"}>, %y: tensor<8xf64, {strides = "contiguous"}>, %n: i64, %c: i1) -> (tensor<8xf64>, tensor<f64>) {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %f = "profuse.sum"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<f64>
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%a = %xc, %s = %f) -> (tensor<8xf64>, tensor<f64>) : i64 {
    %v = "profuse.pick"(%a) {index = 0 : i64} : (tensor<8xf64>) -> tensor<f64>
    %w = "profuse.if_then_else"(%c, %v, %s) : (i1, tensor<f64>, tensor<f64>) -> tensor<f64>
    %e = "profuse.sin"(%a) : (tensor<8xf64>) -> tensor<8xf64>
    %b = "profuse.if_then_else"(%c, %e, %a) : (i1, tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
    scf.yield %b, %w : tensor<8xf64>, tensor<f64>
  }
  return %r#0, %r#1 : tensor<8xf64>, tensor<f64>
}

// What the second block does not read is handed on all the same: it replaces it.
// CHECK-LABEL:  // replaced
// CHECK:          scf.while
// CHECK:            scf.condition
// CHECK-NOT:      memref.copy
func.func @replaced(%x: tensor<8xf64, {strides = "contiguous"}>, %most: f64) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0.0 : f64} : () -> f64
  %r:2 = scf.while (%a = %xc, %k = %zero) : (tensor<8xf64>, f64) -> (f64, tensor<8xf64>) {
    %less = "profuse.lt"(%k, %most) : (f64, f64) -> i1
    scf.condition(%less) %k, %a : f64, tensor<8xf64>
  } do {
  ^bb0(%k: f64, %a: tensor<8xf64>):
    %half = "profuse.constant"() {value = 0.5 : f64} : () -> f64
    %more = "profuse.add"(%k, %half) : (f64, f64) -> f64
    %b = "profuse.mul"(%x, %more) : (tensor<8xf64, {strides = "contiguous"}>, f64) -> tensor<8xf64>
    scf.yield %b, %more : tensor<8xf64>, f64
  }
  return %r#1 : tensor<8xf64>
}

// An element that is read behind a write to another one is read before it.
// CHECK-LABEL:  // before
// CHECK:        func.func @before(%{{.*}}: memref<8xf64>, %[[OUT:.*]]: memref<8xf64>,
// CHECK:          scf.for {{.*}} iter_args
// CHECK-NEXT:       memref.load %[[OUT]]
// CHECK-NEXT:       memref.store %{{.*}}, %[[OUT]]
// CHECK-NOT:      memref.alloc
func.func @before(%x: tensor<8xf64, {strides = "contiguous"}>) -> (tensor<8xf64>, tensor<f64>) {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %s0 = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %r:2 = scf.for %i = %zero to %eight step %one iter_args(%a = %xc, %s = %s0) -> (tensor<8xf64>, tensor<f64>) : i64 {
    %w = "profuse.pick_scatter"(%a, %s, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    %v = "profuse.pick"(%a, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    scf.yield %w, %v : tensor<8xf64>, tensor<f64>
  }
  return %r#0, %r#1 : tensor<8xf64>, tensor<f64>
}

// Both branches leave the array in one place: the one of them that makes a new one writes it there.
// CHECK-LABEL:  // branches
// CHECK:        func.func @branches(%{{.*}}: memref<8xf64>, %{{.*}}: memref<i8>, %[[OUT:.*]]: memref<8xf64>,
// CHECK:          scf.for
// CHECK:          scf.for
// CHECK:            scf.if
// CHECK:              memref.store %{{.*}}, %[[OUT]]
// CHECK-NOT:      memref.alloc
func.func @branches(%x: tensor<8xf64, {strides = "contiguous"}>, %c: i1) -> tensor<8xf64> {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %zero to %eight step %one iter_args(%a = %xc) -> (tensor<8xf64>) : i64 {
    %b = scf.if %c -> (tensor<8xf64>) {
      %e = "profuse.add"(%a, %x) : (tensor<8xf64>, tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
      scf.yield %e : tensor<8xf64>
    } else {
      scf.yield %a : tensor<8xf64>
    }
    scf.yield %b : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// A place that data decide: one test where it counts from the front, the rest of it aside. Nothing
// is kept in a cell, and ints of Python are tested for leaving 64 bits.
// CHECK-LABEL:  // wandering
// CHECK:          scf.while (%[[K:.*]] = %{{.*}})
// CHECK:            %[[IN:.*]] = arith.cmpi ult, %[[K]], %c8_i64
// CHECK-NEXT:       %[[AT:.*]] = scf.if %[[IN]] -> (i64) {
// CHECK-NEXT:         scf.yield %[[K]]
// CHECK-NEXT:       } else {
// CHECK-NEXT:         %[[END:.*]] = arith.addi %[[K]], %c8_i64
// CHECK-NEXT:         %[[OK:.*]] = arith.cmpi ult, %[[END]], %c8_i64
// CHECK-NEXT:         cf.assert %[[OK]], "void"
// CHECK-NEXT:         scf.yield %[[END]]
// CHECK:            memref.load
// CHECK:            scf.condition
// CHECK:            llvm.intr.ssub.with.overflow
// CHECK-NOT:      arith.ori
// CHECK:          return
func.func @wandering(%x: tensor<8xf64, {strides = "contiguous"}>, %k: i64) -> tensor<i64> {
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %limit = "profuse.constant"() {value = 0.5 : f64} : () -> f64
  %r = scf.while (%i = %k) : (i64) -> i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %more = "profuse.gt"(%v, %limit) : (tensor<f64>, f64) -> tensor<i1>
    %go = "profuse.truth"(%more) : (tensor<i1>) -> i1
    scf.condition(%go) %i : i64
  } do {
  ^bb0(%i: i64):
    %j = "profuse.sub"(%i, %one) : (i64, i64) -> i64
    scf.yield %j : i64
  }
  %t = "profuse.to_tensor"(%r) : (i64) -> tensor<i64>
  return %t : tensor<i64>
}

// Rounds that may become SIMD code have no way out: they note what is forbidden, and the run ends
// behind them.
// CHECK-LABEL:  // gathered
// CHECK:          memref.store %c0_i8, %[[CELL:.*]][]
// CHECK:          scf.for
// CHECK-NOT:        cf.assert
// CHECK:            memref.store %{{.*}}, %[[CELL]][]
// CHECK:          }
// CHECK:          memref.load %[[CELL]][]
// CHECK:          cf.assert
func.func @gathered(%x: tensor<8xf64, {strides = "contiguous"}>, %k: tensor<20xi64, {strides = "contiguous"}>, %y: tensor<20xf64, {strides = "contiguous"}>) -> tensor<20xf64> {
  %yc = "profuse.copy"(%y) : (tensor<20xf64, {strides = "contiguous"}>) -> tensor<20xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %twenty = "profuse.constant"() {value = 20 : i64} : () -> i64
  %r = scf.for %i = %zero to %twenty step %one iter_args(%a = %yc) -> (tensor<20xf64>) : i64 {
    %at = "profuse.pick"(%k, %i) {index = -9223372036854775808 : i64} : (tensor<20xi64, {strides = "contiguous"}>, i64) -> tensor<i64>
    %v = "profuse.take"(%x, %at) {axis = 0 : i64} : (tensor<8xf64, {strides = "contiguous"}>, tensor<i64>) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<20xf64>, tensor<f64>, i64) -> tensor<20xf64>
    scf.yield %w : tensor<20xf64>
  }
  return %r : tensor<20xf64>
}

// A part whose size a number tells: the number is tested once, where it is found, and what is made
// of the part lies in memory that a run which ends in the middle leaves to the entry.
// CHECK-LABEL:  // parts
// CHECK:          %[[WORD:.*]] = memref.view %arg{{.*}}[%c0][] : memref<?xi8> to memref<index>
// CHECK:          scf.for
// CHECK:            %[[N:.*]] = memref.load
// CHECK:            %[[FITS:.*]] = arith.cmpi ult, %[[N]], %c2147483648_i64
// CHECK-NEXT:       cf.assert %[[FITS]]
// CHECK:            %[[MADE:.*]] = memref.alloc(
// CHECK-NEXT:       %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %[[MADE]]
// CHECK-NEXT:       memref.store %[[ADDRESS]], %[[WORD]][]
// CHECK:            memref.dealloc %[[MADE]]
// CHECK-NEXT:       memref.store %c0{{.*}}, %[[WORD]][]
// LLVM-LABEL:   // parts
// LLVM:         define void @parts_entry(ptr %0)
// LLVM:           call void @parts(
// LLVM:           br i1 %{{.*}}, label %[[LEFT:.*]], label %[[DONE:.*]]
// LLVM:           [[LEFT]]:
// LLVM:           call void @free(
func.func @parts(%x: tensor<8xf64, {strides = "contiguous"}>, %k: tensor<5xi64, {strides = "contiguous"}>, %y: tensor<5xf64, {strides = "contiguous"}>) -> tensor<5xf64> {
  %yc = "profuse.copy"(%y) : (tensor<5xf64, {strides = "contiguous"}>) -> tensor<5xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %five = "profuse.constant"() {value = 5 : i64} : () -> i64
  %r = scf.for %i = %zero to %five step %one iter_args(%a = %yc) -> (tensor<5xf64>) : i64 {
    %at = "profuse.pick"(%k, %i) {index = -9223372036854775808 : i64} : (tensor<5xi64, {strides = "contiguous"}>, i64) -> tensor<i64>
    %n = "profuse.item"(%at) : (tensor<i64>) -> i64
    %size = "profuse.count"(%n) {symbol = "n0"} : (i64) -> i64
    %part = "profuse.slice"(%x, %size) {starts = array<i64: 0>, stops = array<i64: -9223372036854775808>} : (tensor<8xf64, {strides = "contiguous"}>, i64) -> !profuse.tensor
    %sums = "profuse.cumsum"(%part) {axis = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
    %last = "profuse.pick"(%sums) {index = -1 : i64} : (!profuse.tensor) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %last, %i) {index = -9223372036854775808 : i64} : (tensor<5xf64>, tensor<f64>, i64) -> tensor<5xf64>
    scf.yield %w : tensor<5xf64>
  }
  return %r : tensor<5xf64>
}

// An element that is read behind a write, of the array as it was, is read before it, and only where
// it is known that there is one.
// CHECK-LABEL:  // kept
// CHECK:          scf.for {{.*}} -> (f64)
// CHECK:            %[[IN:.*]] = arith.cmpi ult, %[[N:.*]], %c8_i64
// CHECK:            scf.if %[[IN]]
// CHECK:              cf.assert
// CHECK:            %[[OLD:.*]] = memref.load
// CHECK:            memref.store
// CHECK:            arith.addf %{{.*}}, %[[OLD]]
func.func @kept(%x: tensor<8xf64, {strides = "contiguous"}>, %k: tensor<8xi64, {strides = "contiguous"}>) -> (tensor<8xf64>, tensor<f64>) {
  %xc = "profuse.copy"(%x) : (tensor<8xf64, {strides = "contiguous"}>) -> tensor<8xf64>
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %start = "profuse.constant"() {value = 0.5 : f64} : () -> f64
  %s = "profuse.to_tensor"(%start) : (f64) -> tensor<f64>
  %r:2 = scf.for %i = %zero to %eight step %one iter_args(%a = %xc, %sum = %s) -> (tensor<8xf64>, tensor<f64>) : i64 {
    %w = "profuse.pick_scatter"(%a, %sum, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    %at = "profuse.pick"(%k, %i) {index = -9223372036854775808 : i64} : (tensor<8xi64, {strides = "contiguous"}>, i64) -> tensor<i64>
    %n = "profuse.item"(%at) : (tensor<i64>) -> i64
    %old = "profuse.pick"(%a, %n) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %more = "profuse.add"(%sum, %old) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %w, %more : tensor<8xf64>, tensor<f64>
  }
  return %r#0, %r#1 : tensor<8xf64>, tensor<f64>
}

// A float to which rounds only add, while they compute a function: a test of all rounds, the loop with
// what huge arguments need, behind a branch, and the loop without it.
// CHECK-LABEL:  // sines
// CHECK:          %[[ANY:.*]] = scf.for {{.*}} -> (i1)
// CHECK:          scf.if %[[ANY]]
// CHECK:            scf.for {{.*}} -> (f64)
// CHECK:              %[[RARE:.*]] = llvm.intr.expect
// CHECK:              scf.if %[[RARE]] -> (f64) {
// CHECK-NEXT:           math.sin
// CHECK:          } else {
// CHECK:            scf.for {{.*}} -> (f64)
// CHECK-NOT:          math.sin
// CHECK:          return
func.func @sines(%x: tensor<64xf64, {strides = "contiguous"}>) -> tensor<f64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %many = "profuse.constant"() {value = 64 : i64} : () -> i64
  %start = "profuse.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %r = scf.for %i = %zero to %many step %one iter_args(%s = %start) -> (tensor<f64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<64xf64, {strides = "contiguous"}>, i64) -> tensor<f64>
    %w = "profuse.sin"(%v) : (tensor<f64>) -> tensor<f64>
    %t = "profuse.add"(%s, %w) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    scf.yield %t : tensor<f64>
  }
  return %r : tensor<f64>
}

// Both sides of a little branch of ints are computed; the product is tested by its operand, and the
// run ends only where the side is taken. A division by 2 is a shift, and rounds are counted untested.
// CHECK-LABEL:  // halved
// CHECK:          scf.while
// CHECK:            arith.andi %{{.*}}, %c1_i64
// CHECK:            arith.shrsi
// CHECK:            %[[FAR:.*]] = arith.cmpi ugt
// CHECK:            %[[RARE:.*]] = llvm.intr.expect %[[FAR]]
// CHECK:            scf.if %[[RARE]] {
// CHECK:              cf.assert
// CHECK:            arith.select
// CHECK-NOT:        overflow
// CHECK:          return
func.func @halved(%n: i64) -> (tensor<i64>, tensor<i64>) {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %two = "profuse.constant"() {value = 2 : i64} : () -> i64
  %three = "profuse.constant"() {value = 3 : i64} : () -> i64
  %r:2 = scf.while (%k = %n, %steps = %zero) : (i64, i64) -> (i64, i64) {
    %go = "profuse.ne"(%k, %one) : (i64, i64) -> i1
    scf.condition(%go) %k, %steps : i64, i64
  } do {
  ^bb0(%k: i64, %steps: i64):
    %rest = "profuse.remainder"(%k, %two) : (i64, i64) -> i64
    %even = "profuse.eq"(%rest, %zero) : (i64, i64) -> i1
    %next = scf.if %even -> (i64) {
      %half = "profuse.floor_div"(%k, %two) : (i64, i64) -> i64
      scf.yield %half : i64
    } else {
      %more = "profuse.mul"(%three, %k) : (i64, i64) -> i64
      scf.yield %more : i64
    }
    %counted = "profuse.add"(%steps, %one) : (i64, i64) -> i64
    scf.yield %next, %counted : i64, i64
  }
  %a = "profuse.to_tensor"(%r#0) : (i64) -> tensor<i64>
  %b = "profuse.to_tensor"(%r#1) : (i64) -> tensor<i64>
  return %a, %b : tensor<i64>, tensor<i64>
}
