// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// Rows in chunks: the entry function hands the step's function to the threads, by a function that
// unpacks pointers; the number of rows of a chunk is a constant.
// CHECK-LABEL: // rows
// CHECK:       llvm.func internal @profuse_run_chunks
// CHECK:         llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, i64) -> ()
// CHECK:       func.func @rows_entry
// CHECK:         %[[ARRAY:.*]] = llvm.alloca
// CHECK:         %[[PART:.*]] = constant @rows_nest0_part
// CHECK:         llvm.call @profuse_run_chunks(%{{.*}}, %[[ARRAY]], %{{.*}}, %{{.*}})
// CHECK:       func.func @rows_nest0(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: !llvm.ptr {llvm.noalias}, %[[LOW:.*]]: i64, %[[HIGH:.*]]: i64)
// CHECK:         scf.for %{{.*}} = %[[LOW]] to %[[HIGH]]
// CHECK:       func.func @rows_nest0_part(%{{.*}}: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// CHECK:         call @rows_nest0(%{{.*}}, %{{.*}}, %[[BEGIN]], %[[END]])
func.func @rows(%x: tensor<2000x1001xf32, {strides = "contiguous"}>) -> tensor<2000xf32> {
  %m = "profuse.sum"(%x) {axes = array<i64: 1>, keepdims = false} : (tensor<2000x1001xf32, {strides = "contiguous"}>) -> tensor<2000xf32>
  return %m : tensor<2000xf32>
}

// Each chunk adds up the columns of its rows in memory of its own; the sums are merged in order.
// CHECK-LABEL: // columns
// CHECK-NEXT:  // workspace {{[1-9]}}
// CHECK:       func.func @columns_entry
// CHECK:         llvm.call @profuse_run_chunks
// CHECK:         call @merge_arith_addf_f32_rows
// CHECK:       func.func @columns_nest0
// CHECK:       func.func @columns_nest0_part
// CHECK:         %[[NUMBER:.*]] = arith.divsi
// CHECK:         arith.muli %[[NUMBER]]
// CHECK:         call @columns_nest0
func.func private @columns(%x: tensor<2000x1001xf32, {strides = "contiguous"}>) -> tensor<1001xf32> {
  %s = "profuse.sum"(%x) {axes = array<i64: 0>, keepdims = false} : (tensor<2000x1001xf32, {strides = "contiguous"}>) -> tensor<1001xf32>
  return %s : tensor<1001xf32>
}

// The rows of a product in 21 chunks of 24, the last one of 32, of which a thread takes any number.
// CHECK-LABEL: // product
// CHECK:       func.func @product_entry
// CHECK:         arith.constant 24 : i64
// CHECK:         %[[COUNT:.*]] = arith.constant 21 : i64
// CHECK:         llvm.call @profuse_run_chunks(%{{.*}}, %{{.*}}, %[[COUNT]], %c0_{{.*}})
// CHECK:       func.func @product_product0
// CHECK:         arith.subi
// CHECK:         call @scipy_cblas_sgemm
func.func private @product(%x: tensor<512x300xf32, {strides = "contiguous"}>, %y: tensor<300x200xf32, {strides = "contiguous"}>) -> tensor<512x200xf32> {
  %p = "profuse.matmul"(%x, %y) : (tensor<512x300xf32, {strides = "contiguous"}>, tensor<300x200xf32, {strides = "contiguous"}>) -> tensor<512x200xf32>
  return %p : tensor<512x200xf32>
}

// A product of few rows in chunks of 512 columns; a word of the pool's block says whether a thread
// may take several. What is no multiple of 16 is a call of its own.
// CHECK-LABEL: // product_of_few_rows
// CHECK:       func.func @product_of_few_rows_entry
// CHECK:         %[[POOL:.*]] = llvm.mlir.addressof @profuse_pool
// CHECK:         %[[WORD:.*]] = llvm.getelementptr inbounds %[[POOL]]
// CHECK:         %[[JOINED:.*]] = llvm.load %[[WORD]]
// CHECK:         arith.constant 512 : i64
// CHECK:         llvm.call @profuse_run_chunks(%{{.*}}, %{{.*}}, %{{.*}}, %[[JOINED]])
// CHECK:       func.func @product_of_few_rows_product0(%[[X:.*]]: !llvm.ptr {llvm.noalias}, %[[Y:.*]]: !llvm.ptr {llvm.noalias}, %[[OUT:.*]]: !llvm.ptr {llvm.noalias}, %[[LOW:.*]]: i64, %[[HIGH:.*]]: i64)
// CHECK:         %[[SOME:.*]] = arith.subi %[[HIGH]], %[[LOW]]
// CHECK:         %[[REST:.*]] = arith.remui %[[SOME]]
// CHECK:         %[[END:.*]] = arith.subi %[[HIGH]], %[[REST]]
// CHECK:         llvm.getelementptr inbounds %[[OUT]][%[[LOW]]]
// CHECK:         call @scipy_cblas_sgemm
// CHECK:         llvm.getelementptr inbounds %[[OUT]][%[[END]]]
// CHECK:         call @scipy_cblas_sgemm
func.func private @product_of_few_rows(%x: tensor<32x256xf32, {strides = "contiguous"}>, %y: tensor<256x1100xf32, {strides = "contiguous"}>) -> tensor<32x1100xf32> {
  %p = "profuse.matmul"(%x, %y) : (tensor<32x256xf32, {strides = "contiguous"}>, tensor<256x1100xf32, {strides = "contiguous"}>) -> tensor<32x1100xf32>
  return %p : tensor<32x1100xf32>
}

// Sizes decide which of two loops is divided; a call of the step has the ranges of both.
// CHECK-LABEL: // chosen
// CHECK:       func.func @chosen_entry
// CHECK:         %[[MANY:.*]] = arith.divui
// CHECK:         arith.cmpi slt, %[[MANY]]
// CHECK:         arith.select
// CHECK:         llvm.call @profuse_run_chunks
// CHECK:       func.func @chosen_nest0(%{{.*}}, %{{.*}}, [[LOW:%arg[0-9]+]]: i64, [[HIGH:%arg[0-9]+]]: i64, [[LOW1:%arg[0-9]+]]: i64, [[HIGH1:%arg[0-9]+]]: i64, %{{.*}}: i64, %{{.*}}: i64)
// CHECK:         scf.for %{{.*}} = [[LOW]] to [[HIGH]]
// CHECK:           scf.for %{{.*}} = [[LOW1]] to [[HIGH1]]
// CHECK-NOT:     scf.for %{{.*}} = [[LOW]] to [[HIGH]]
// CHECK:       func.func @chosen_nest0_part
// CHECK:         arith.cmpi eq
// CHECK:         arith.select
// CHECK:         call @chosen_nest0
func.func private @chosen(%x: tensor<?x?x64xf32, {dims = ["n", "m", "64"], strides = "contiguous"}>) -> tensor<?x?xf32, {dims = ["n", "m"]}> {
  %s = "profuse.sum"(%x) {axes = array<i64: 2>, keepdims = false} : (tensor<?x?x64xf32, {dims = ["n", "m", "64"], strides = "contiguous"}>) -> tensor<?x?xf32, {dims = ["n", "m"]}>
  return %s : tensor<?x?xf32, {dims = ["n", "m"]}>
}

// What takes a few microseconds runs as it is.
// CHECK-LABEL: // small
// CHECK-NOT:   profuse_run_chunks
func.func private @small(%x: tensor<64x256xf32, {strides = "contiguous"}>) -> tensor<64x256xf32> {
  %y = "profuse.exp"(%x) : (tensor<64x256xf32, {strides = "contiguous"}>) -> tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}
