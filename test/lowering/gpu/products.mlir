// RUN: profuse-opt -p to-gpu %s | FileCheck %s

// A product is the library's; the transposed operand is its strides. What follows is a kernel.
// CHECK-LABEL: func.func private @dense(
// CHECK-SAME:  LibraryProduct(kind='matmul', dtype='f32'
// CHECK-SAME:  right=Matrix(argument=('input', 1), offset='0', dims=('16', '32'), strides=('1', '16'))
// CHECK-SAME:  output=Matrix(argument=('workspace', '0', 'f32')
// CHECK-SAME:  Launch(kernel='dense_nest1'
func.func @dense(%0: tensor<64x16xf32, {strides = "contiguous"}>, %1: tensor<32x16xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %2 = "profuse.transpose"(%1) {perm = array<i64: 1, 0>} : (tensor<32x16xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %3 = "profuse.matmul"(%0, %2) : (tensor<64x16xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %4 = "profuse.tanh"(%3) : (!profuse.tensor) -> !profuse.tensor
  return %4 : !profuse.tensor
}

// The library is given memory: a constant is stored first, by a kernel that reads the module's table.
// CHECK-LABEL: func.func private @weights(
// CHECK-SAME:  Launch(kernel='weights_nest0'{{.*}} arguments=(('workspace', '0', 'f32'),)
// CHECK-SAME:  LibraryProduct(kind='matmul', dtype='f32'
// CHECK-SAME:  right=Matrix(argument=('workspace', '0', 'f32'), offset='0', dims=('3', '2'), strides=('2', '1'))
// CHECK:       memref.global "private" constant @weights_constant0
// CHECK:       gpu.func @weights_nest0(
// CHECK-NEXT:    memref.get_global @weights_constant0
func.func private @weights(%0: tensor<4x3xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.constant"() {value = dense<"0x000000000000803F0000004000004040000080400000A040"> : tensor<3x2xf32>} : () -> !profuse.tensor
  %2 = "profuse.matmul"(%0, %1) : (tensor<4x3xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  return %2 : !profuse.tensor
}

// Halves are multiplied as they are, summed up in f32 and rounded once: one step, and no conversion.
// CHECK-LABEL: func.func private @halves(
// CHECK-SAME:  profuse.plan = ["LibraryProduct(kind='matmul', dtype='f16', left=Matrix(argument=('input', 0)
// CHECK-SAME:  right=Matrix(argument=('input', 1)
// CHECK-SAME:  output=Matrix(argument=('output', 0), {{.*}} wide=False, bias=None)"]
func.func private @halves(%0: tensor<4x3xf16, {strides = "contiguous"}>, %1: tensor<3x2xf16, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %2 = "profuse.matmul"(%0, %1) : (tensor<4x3xf16, {strides = "contiguous"}>, tensor<3x2xf16, {strides = "contiguous"}>) -> !profuse.tensor
  return %2 : !profuse.tensor
}
