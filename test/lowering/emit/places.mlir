// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// The rows of a table are set, and then one loop over the places adds a row for each of them.
// CHECK-LABEL: // places
// CHECK:       func.func @places_nest
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             llvm.store
// CHECK:         scf.for
// CHECK:           %[[P:.*]] = arith.maxsi
// CHECK:           arith.muli %[[P]]
// CHECK:           scf.for
// CHECK:             %[[HERE:.*]] = arith.cmpi eq
// CHECK:             %[[SUM:.*]] = arith.addf
// CHECK:             arith.select %[[HERE]], %[[SUM]]
// CHECK-NEXT:        llvm.store
// CHECK:       return
func.func @places(%x: tensor<9x7xf32, {strides = "contiguous"}>, %v: tensor<5x7xf32, {strides = "contiguous"}>, %i: tensor<5xi64, {strides = "contiguous"}>) -> tensor<9x7xf32> {
  %y = "profuse.index_add"(%x, %v, %i) {axes = array<i64: 0>} : (tensor<9x7xf32, {strides = "contiguous"}>, tensor<5x7xf32, {strides = "contiguous"}>, tensor<5xi64, {strides = "contiguous"}>) -> tensor<9x7xf32>
  return %y : tensor<9x7xf32>
}

// Threads that share the rows of a table go through all places, and add to their own rows.
// CHECK-LABEL: // shared
// CHECK:       llvm.call @profuse_run_chunks
// CHECK:       func.func @shared_nest1({{.*}}, %[[LOW:.*]]: i64, %[[HIGH:.*]]: i64)
// CHECK:         scf.for %{{.*}} = %[[LOW]] to %[[HIGH]]
// CHECK:         scf.for
// CHECK:           %[[BELOW:.*]] = arith.cmpi slt, %{{.*}}, %[[LOW]]
// CHECK:           %[[NOT:.*]] = arith.xori %[[BELOW]]
// CHECK:           %[[END:.*]] = arith.cmpi slt, %{{.*}}, %[[HIGH]]
// CHECK:           %[[MINE:.*]] = arith.andi %[[NOT]], %[[END]]
// CHECK:           scf.if %[[MINE]]
// CHECK:             scf.for
func.func private @shared(%x: tensor<900x256xf32, {strides = "contiguous"}>, %v: tensor<9000x256xf32, {strides = "contiguous"}>, %i: tensor<9000xi64, {strides = "contiguous"}>) -> tensor<900x256xf32> {
  %y = "profuse.index_add"(%x, %v, %i) {axes = array<i64: 0>} : (tensor<900x256xf32, {strides = "contiguous"}>, tensor<9000x256xf32, {strides = "contiguous"}>, tensor<9000xi64, {strides = "contiguous"}>) -> tensor<900x256xf32>
  return %y : tensor<900x256xf32>
}
