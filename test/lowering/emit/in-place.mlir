// RUN: %{python} %S/../lower.py loops %s in-place | FileCheck %s

// Each element is read where it is written: the input and the output may be one buffer, and the
// loop says that its iterations are independent. The row is another buffer for certain.
// CHECK-LABEL: // elementwise
// CHECK:       // in place ((0, 0),)
// CHECK:       #[[G:.*]] = #llvm.access_group
// CHECK:       #[[A:.*]] = #llvm.loop_annotation<{{.*}}parallelAccesses = #[[G]]>
// CHECK:       func.func @elementwise_nest0(%{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr {llvm.noalias}, %{{[a-z0-9]+}}: !llvm.ptr,
// CHECK:         llvm.load {{.*}} {access_groups = [#[[G]]]}
// CHECK:         llvm.store {{.*}} {access_groups = [#[[G]]]}
// CHECK:       } {llvm.loop_annotation = #[[A]]}
func.func @elementwise(%x: tensor<8x64xf32, {strides = "contiguous"}>, %b: tensor<64xf32, {strides = "contiguous"}>) -> tensor<8x64xf32> {
  %0 = "profuse.mul"(%x, %b) : (tensor<8x64xf32, {strides = "contiguous"}>, tensor<64xf32, {strides = "contiguous"}>) -> tensor<8x64xf32>
  %1 = "profuse.abs"(%0) : (tensor<8x64xf32>) -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

// A nest with a reduction, whose loops need not be independent: nothing is shared.
// CHECK-LABEL: // centred
// CHECK:       // in place ()
// CHECK-NOT:   access_group
// CHECK:       func.func @centred_nest0(%{{[a-z0-9]+}}: !llvm.ptr {llvm.noalias}, %{{[a-z0-9]+}}: !llvm.ptr {llvm.noalias}
func.func private @centred(%x: tensor<8x64xf32, {strides = "contiguous"}>) -> tensor<8x64xf32> {
  %s = "profuse.sum"(%x) {axes = array<i64: 1>, keepdims = true} : (tensor<8x64xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %d = "profuse.sub"(%x, %s) : (tensor<8x64xf32, {strides = "contiguous"}>, !profuse.tensor) -> tensor<8x64xf32>
  return %d : tensor<8x64xf32>
}
