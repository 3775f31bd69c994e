// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// One pass over the rows; in a row: maximum; exponentials and their sum; quotients. The
// exponentials wait on the stack, and nothing is allocated.
// CHECK-LABEL: // softmax
// CHECK-NEXT:  // workspace 0
// CHECK:       func.func @softmax_entry(%{{.*}}: !llvm.ptr)
// CHECK:         call @softmax_nest0
// CHECK-NOT:     call
// CHECK:       func.func @softmax_nest0
// CHECK:         %[[E:.*]] = llvm.alloca
// CHECK:         scf.for
// CHECK:           %[[M:.*]] = scf.for {{.*}} iter_args
// CHECK:             arith.maximumf
// CHECK:           } {llvm.loop_annotation
// CHECK:           %[[S:.*]] = scf.for {{.*}} iter_args
// CHECK:             arith.subf %{{.*}}, %[[M]]
// CHECK:             llvm.getelementptr inbounds %[[E]]
// CHECK-NEXT:        llvm.store
// CHECK:             arith.addf
// CHECK:           } {llvm.loop_annotation
// CHECK:           scf.if
// CHECK:             arith.divf %{{.*}}, %[[S]]
// CHECK:             scf.for
// CHECK-NOT:         arith.divf
// CHECK:           } else {
// CHECK:             scf.for
// CHECK:               arith.divf %{{.*}}, %[[S]]
// CHECK:       return
func.func @softmax(%x: tensor<64x256xf32, {strides = "contiguous"}>) -> tensor<64x256xf32> {
  %m = "profuse.max"(%x) {axes = array<i64: 1>, keepdims = true} : (tensor<64x256xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %d = "profuse.sub"(%x, %m) : (tensor<64x256xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %e = "profuse.exp"(%d) : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.sum"(%e) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.div"(%e, %s) : (!profuse.tensor, !profuse.tensor) -> tensor<64x256xf32>
  return %q : tensor<64x256xf32>
}

// A column sum adds whole rows: the loop over columns is innermost, accumulators are the result.
// CHECK-LABEL: // column_sum
// CHECK-NEXT:  // workspace 0
// CHECK:       func.func @column_sum_nest0
// CHECK:         scf.for
// CHECK:           llvm.store
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             arith.addf
// CHECK:             llvm.store
// CHECK:       return
func.func private @column_sum(%x: tensor<64x256xf32, {strides = "contiguous"}>) -> tensor<256xf32> {
  %s = "profuse.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<64x256xf32, {strides = "contiguous"}>) -> tensor<256xf32>
  return %s : tensor<256xf32>
}

// Sums over a symbolic size are taken in blocks, and the blocks' sums in double precision.
// CHECK-LABEL: // total
// CHECK:       func.func @total_nest0
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f64)
// CHECK:           scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32)
// CHECK:           arith.extf
// CHECK:         arith.truncf
func.func private @total(%x: tensor<?xf32, {dims = ["s0"], strides = "contiguous"}>) -> tensor<f32> {
  %s = "profuse.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<?xf32, {dims = ["s0"], strides = "contiguous"}>) -> tensor<f32>
  return %s : tensor<f32>
}

// Two results of the same elements are computed in one loop.
// CHECK-LABEL: // two
// CHECK:       func.func @two_nest0
// CHECK:         scf.for
// CHECK:           math.sqrt
// CHECK-NOT:       math.sqrt
// CHECK:           llvm.store
// CHECK:           llvm.store
// CHECK:       return
func.func private @two(%x: tensor<?xf32, {dims = ["s0"], strides = "contiguous"}>) -> (tensor<?xf32, {dims = ["s0"]}>, tensor<?xf32, {dims = ["s0"]}>) {
  %a = "profuse.sqrt"(%x) : (tensor<?xf32, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf32, {dims = ["s0"]}>
  %b = "profuse.add"(%a, %x) : (tensor<?xf32, {dims = ["s0"]}>, tensor<?xf32, {dims = ["s0"], strides = "contiguous"}>) -> tensor<?xf32, {dims = ["s0"]}>
  return %a, %b : tensor<?xf32, {dims = ["s0"]}>, tensor<?xf32, {dims = ["s0"]}>
}

// The index of a maximum: in blocks, of which the inner loop carries no index of its own; then the
// place in the block that has won. Elements in memory are read again.
// CHECK-LABEL: // place
// CHECK:       func.func @place_nest0
// CHECK-NOT:     llvm.alloca
// CHECK:         %[[B:.*]]:2 = scf.for {{.*}} iter_args
// CHECK:           %[[M:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SAME:.*]] = %{{.*}})
// CHECK:             %[[N:.*]] = arith.maximumf
// CHECK-NEXT:        scf.yield %[[N]], %[[SAME]]
// CHECK:           arith.cmpf ogt, %[[M]]#0
// CHECK:         scf.for {{.*}} -> (i32)
// CHECK:           llvm.load
// CHECK:           arith.cmpf oeq, %{{.*}}, %[[B]]#0
// CHECK:           arith.cmpf uno
// CHECK:           arith.minsi
func.func private @place(%x: tensor<?x?xf32, {dims = ["s0", "s1"], strides = "contiguous"}>) -> tensor<?xi64, {dims = ["s0"]}> {
  %i = "profuse.argmax"(%x) {axis = 1 : i64} : (tensor<?x?xf32, {dims = ["s0", "s1"], strides = "contiguous"}>) -> tensor<?xi64, {dims = ["s0"]}>
  return %i : tensor<?xi64, {dims = ["s0"]}>
}

// Computed elements wait on the stack for the search: those of this block, and of the best one.
// CHECK-LABEL: // computed
// CHECK-NEXT:  // workspace 0
// CHECK:       func.func @computed_nest0
// CHECK:         %[[E:.*]] = llvm.alloca %{{.*}} x f32
// CHECK:         arith.addf
// CHECK:         llvm.store
// CHECK:         arith.maximumf
// CHECK-NOT:     arith.addf
// CHECK:         scf.for {{.*}} -> (i32)
func.func private @computed(%x: tensor<4x4096xf32, {strides = "contiguous"}>) -> tensor<4xi64> {
  %y = "profuse.add"(%x, %x) : (tensor<4x4096xf32, {strides = "contiguous"}>, tensor<4x4096xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %i = "profuse.argmax"(%y) {axis = 1 : i64} : (!profuse.tensor) -> tensor<4xi64>
  return %i : tensor<4xi64>
}

// A product is a library call; a transposed operand is a flag. What surrounds it is fused.
// CHECK-LABEL: // dense
// CHECK-NEXT:  // workspace 8192
// CHECK-DAG:     arith.constant 112 : i32
// CHECK:         call @scipy_cblas_sgemm
// CHECK:         call @dense_nest1
// CHECK-NOT:     call
// CHECK:       func.func @dense_nest1
func.func private @dense(%x: tensor<64x16xf32, {strides = "contiguous"}>, %w: tensor<32x16xf32, {strides = "contiguous"}>) -> tensor<64x32xf32> {
  %t = "profuse.transpose"(%w) {perm = array<i64: 1, 0>} : (tensor<32x16xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %p = "profuse.matmul"(%x, %t) : (tensor<64x16xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %r = "profuse.tanh"(%p) : (!profuse.tensor) -> tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}
