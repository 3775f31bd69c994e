// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// Attention in blocks of 128 rows: for each block, rows of the scores, the softmax of these rows, and
// rows of the result. The workspace has the scores of one block for each of 16 chunks; the weights
// take the place of the scores.
// CHECK-LABEL: // attention
// CHECK-NEXT:  // workspace 4194304
// CHECK:       func.func @attention_entry
// CHECK:         constant @attention_blocks0_part
// CHECK:         llvm.call @profuse_run_chunks
// CHECK-NOT:     profuse_run_chunks
// CHECK:       func.func @attention_blocks0(%[[Q:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[K:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[S:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[V:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[O:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[FIRST:[^:]*]]: i64, %[[LAST:[^:]*]]: i64)
// CHECK:         scf.for %[[BLOCK:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK:           %[[MATRIX:.*]] = arith.divui %[[BLOCK]]
// CHECK:           %[[PLACE:.*]] = arith.remui %[[BLOCK]]
// CHECK:           %[[LOW:.*]] = arith.muli %[[PLACE]]
// CHECK:           %[[HIGH:.*]] = arith.minsi
// CHECK:           call @scipy_cblas_sgemm({{.*}}, %[[S]], %{{[^,]*}})
// CHECK:           call @attention_blocks0_nest(%[[S]], %[[MATRIX]], %[[LOW]], %[[HIGH]])
// CHECK:           call @scipy_cblas_sgemm({{.*}}, %[[S]], {{.*}})
// CHECK-NOT:     scf.for
// CHECK:       func.func @attention_blocks0_nest(%[[ROWS:[^:]*]]: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: i64, %[[BEGIN:[^:]*]]: i64, %[[END:[^:]*]]: i64)
// CHECK:         scf.for %[[ROW:.*]] = %[[BEGIN]] to %[[END]]
// CHECK:           %[[OWN:.*]] = arith.subi %[[ROW]], %[[BEGIN]]
// CHECK:           arith.muli %[[OWN]]
func.func @attention(%q: tensor<8x512x64xf32, {strides = "contiguous"}>, %k: tensor<8x64x512xf32, {strides = "contiguous"}>, %v: tensor<8x512x64xf32, {strides = "contiguous"}>) -> tensor<8x512x64xf32> {
  %s = "profuse.matmul"(%q, %k) : (tensor<8x512x64xf32, {strides = "contiguous"}>, tensor<8x64x512xf32, {strides = "contiguous"}>) -> tensor<8x512x512xf32>
  %m = "profuse.max"(%s) {axes = array<i64: 2>, keepdims = true} : (tensor<8x512x512xf32>) -> tensor<8x512x1xf32>
  %d = "profuse.sub"(%s, %m) : (tensor<8x512x512xf32>, tensor<8x512x1xf32>) -> tensor<8x512x512xf32>
  %e = "profuse.exp"(%d) : (tensor<8x512x512xf32>) -> tensor<8x512x512xf32>
  %t = "profuse.sum"(%e) {axes = array<i64: 2>, keepdims = true} : (tensor<8x512x512xf32>) -> tensor<8x512x1xf32>
  %p = "profuse.div"(%e, %t) : (tensor<8x512x512xf32>, tensor<8x512x1xf32>) -> tensor<8x512x512xf32>
  %o = "profuse.matmul"(%p, %v) : (tensor<8x512x512xf32>, tensor<8x512x64xf32, {strides = "contiguous"}>) -> tensor<8x512x64xf32>
  return %o : tensor<8x512x64xf32>
}

// Sums of columns need all rows of the first product.
// CHECK-LABEL: // columns
// CHECK-NOT:   _blocks
// CHECK:       func.func @columns_product{{[0-9]}}
func.func private @columns(%q: tensor<8x512x64xf32, {strides = "contiguous"}>, %k: tensor<8x64x512xf32, {strides = "contiguous"}>, %v: tensor<8x512x64xf32, {strides = "contiguous"}>) -> tensor<8x512x64xf32> {
  %s = "profuse.matmul"(%q, %k) : (tensor<8x512x64xf32, {strides = "contiguous"}>, tensor<8x64x512xf32, {strides = "contiguous"}>) -> tensor<8x512x512xf32>
  %t = "profuse.sum"(%s) {axes = array<i64: 1>, keepdims = true} : (tensor<8x512x512xf32>) -> tensor<8x1x512xf32>
  %p = "profuse.div"(%s, %t) : (tensor<8x512x512xf32>, tensor<8x1x512xf32>) -> tensor<8x512x512xf32>
  %o = "profuse.matmul"(%p, %v) : (tensor<8x512x512xf32>, tensor<8x512x64xf32, {strides = "contiguous"}>) -> tensor<8x512x64xf32>
  return %o : tensor<8x512x64xf32>
}

// Sizes that are not known: the number of blocks is computed from the rows of the first product.
// CHECK-LABEL: // symbolic
// CHECK-NEXT:  // workspace {{.*}}min(128, s1)
// CHECK:       func.func @symbolic_blocks0
// CHECK:         %[[ROUND:.*]] = arith.constant 127 : i64
// CHECK:         arith.addi %{{.*}}, %[[ROUND]]
// CHECK:         scf.for
// CHECK:           call @scipy_cblas_sgemm
// CHECK:           call @symbolic_blocks0_nest
// CHECK:           call @scipy_cblas_sgemm
func.func private @symbolic(%q: tensor<?x?x64xf32, {dims = ["s0", "s1", "64"], strides = "contiguous"}>, %k: tensor<?x64x?xf32, {dims = ["s0", "64", "s2"], strides = "contiguous"}>, %v: tensor<?x?x64xf32, {dims = ["s0", "s2", "64"], strides = "contiguous"}>) -> tensor<?x?x64xf32, {dims = ["s0", "s1", "64"]}> {
  %s = "profuse.matmul"(%q, %k) : (tensor<?x?x64xf32, {dims = ["s0", "s1", "64"], strides = "contiguous"}>, tensor<?x64x?xf32, {dims = ["s0", "64", "s2"], strides = "contiguous"}>) -> tensor<?x?x?xf32, {dims = ["s0", "s1", "s2"]}>
  %p = "profuse.tanh"(%s) : (tensor<?x?x?xf32, {dims = ["s0", "s1", "s2"]}>) -> tensor<?x?x?xf32, {dims = ["s0", "s1", "s2"]}>
  %o = "profuse.matmul"(%p, %v) : (tensor<?x?x?xf32, {dims = ["s0", "s1", "s2"]}>, tensor<?x?x64xf32, {dims = ["s0", "s2", "64"], strides = "contiguous"}>) -> tensor<?x?x64xf32, {dims = ["s0", "s1", "64"]}>
  return %o : tensor<?x?x64xf32, {dims = ["s0", "s1", "64"]}>
}

// Small matrices of a batch: the rows of the right operand in vectors, before the loop over rows.
// CHECK-LABEL: // small
// CHECK-NOT:   scipy_cblas
// CHECK:       func.func @small_entry
// CHECK:         scf.for
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr -> vector<8xf32>
// CHECK:           scf.for
// CHECK-COUNT-4:     llvm.shufflevector
// CHECK:             llvm.store %{{.*}} : vector<8xf32>, !llvm.ptr
func.func private @small(%x: tensor<10x5x4xf32, {strides = "contiguous"}>, %y: tensor<10x4x8xf32, {strides = "contiguous"}>) -> tensor<10x5x8xf32> {
  %p = "profuse.matmul"(%x, %y) : (tensor<10x5x4xf32, {strides = "contiguous"}>, tensor<10x4x8xf32, {strides = "contiguous"}>) -> tensor<10x5x8xf32>
  return %p : tensor<10x5x8xf32>
}
