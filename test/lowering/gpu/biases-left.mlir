// RUN: profuse-opt -p to-gpu %s | FileCheck %s --implicit-check-not="bias=Matrix"

// Additions that stay with a kernel.

// A number per row is none per column.
// CHECK-LABEL: func.func private @per_row(
// CHECK-SAME:  LibraryProduct({{.*}} bias=None)", "{{.*}}Launch(kernel='per_row_nest1'
func.func private @per_row(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<4x1xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<4x1xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// CHECK-LABEL: func.func private @matrix(
// CHECK-SAME:  LibraryProduct({{.*}} bias=None)", "{{.*}}Launch(kernel='matrix_nest1'
func.func private @matrix(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<4x2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<4x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// One number for all columns, and a row for each matrix of a batch.
// CHECK-LABEL: func.func private @one_number(
// CHECK-SAME:  LibraryProduct({{.*}} bias=None)", "{{.*}}Launch(kernel='one_number_nest1'
func.func private @one_number(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<1xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<1xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// CHECK-LABEL: func.func private @per_matrix(
// CHECK-SAME:  LibraryProduct({{.*}} bias=None)", "{{.*}}Launch(kernel='per_matrix_nest1'
func.func private @per_matrix(%x: tensor<5x4x3xf32, {strides = "contiguous"}>, %w: tensor<5x3x2xf32, {strides = "contiguous"}>, %b: tensor<5x1x2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<5x4x3xf32, {strides = "contiguous"}>, tensor<5x3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<5x1x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// The product has another reader; the difference is no sum.
// CHECK-LABEL: func.func private @twice(
// CHECK-SAME:  LibraryProduct({{.*}} bias=None)"
func.func private @twice(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}

// CHECK-LABEL: func.func private @difference(
// CHECK-SAME:  LibraryProduct({{.*}} bias=None)", "{{.*}}Launch(kernel='difference_nest1'
func.func private @difference(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.sub"(%0, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// A kernel goes on from the sum, and nothing needs it in memory. `maximum` keeps NaN, which the
// library does not say of its own.
// CHECK-LABEL: func.func private @relu(
// CHECK-SAME:  LibraryProduct({{.*}} bias=None)", "{{.*}}Launch(kernel='relu_nest1'
func.func private @relu(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.constant"() {value = dense<0.0> : tensor<f32>} : () -> !profuse.tensor
  %3 = "profuse.maximum"(%1, %2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %3 : !profuse.tensor
}

// NumPy rounds the product to f16 before it adds; the library would round once.
// CHECK-LABEL: func.func private @rounded(
// CHECK-SAME:  LibraryProduct(kind='matmul', dtype='f16'{{.*}} bias=None)", "{{.*}}Launch(kernel='rounded_nest1'
func.func private @rounded(%x: tensor<4x3xf16, {strides = "contiguous"}>, %w: tensor<3x2xf16, {strides = "contiguous"}>, %b: tensor<2xf16, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf16, {strides = "contiguous"}>, tensor<3x2xf16, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xf16, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// Products with a vector are not worth it, those of integers not the library's.
// CHECK-LABEL: func.func private @vector(
// CHECK-SAME:  LibraryProduct(kind='vecmat'{{.*}} bias=None)", "{{.*}}Launch(kernel='vector_nest1'
func.func private @vector(%x: tensor<3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// CHECK-LABEL: func.func private @integers(
// CHECK-NOT:   LibraryProduct
// CHECK-SAME:  Launch(kernel='integers_nest0'
func.func private @integers(%x: tensor<4x3xi32, {strides = "contiguous"}>, %w: tensor<3x2xi32, {strides = "contiguous"}>, %b: tensor<2xi32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xi32, {strides = "contiguous"}>, tensor<3x2xi32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xi32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// The sum is rounded, and its bias is no half: a library has one type for both.
// CHECK-LABEL: func.func private @mixed(
// CHECK-SAME:  LibraryProduct({{.*}} wide=True, bias=None)", "{{.*}}Launch(kernel='mixed_nest1'
func.func private @mixed(%x: tensor<4x3xbf16, {strides = "contiguous"}>, %w: tensor<3x2xbf16, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.cast"(%x) {dtype = f32} : (tensor<4x3xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.cast"(%w) {dtype = f32} : (tensor<3x2xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.matmul"(%0, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.add"(%2, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %4 = "profuse.cast"(%3) {dtype = bf16} : (!profuse.tensor) -> !profuse.tensor
  return %4 : !profuse.tensor
}
