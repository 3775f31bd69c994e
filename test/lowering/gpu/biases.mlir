// RUN: profuse-opt -p to-gpu %s | FileCheck %s

// One number per column is the library's to add: what there would be of a kernel is gone.
// CHECK-LABEL: func.func private @linear(
// CHECK-SAME:  profuse.plan = ["LibraryProduct(kind='matmul', dtype='f32', left=Matrix(argument=('input', 0)
// CHECK-SAME:  output=Matrix(argument=('output', 0), offset='0', dims=('4', '2'), strides=('2', '1'))
// CHECK-SAME:  bias=Matrix(argument=('input', 2), offset='0', dims=('2',), strides=('1',)))"]
// CHECK-NOT:   gpu.func
func.func private @linear(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%b, %0) : (tensor<2xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// So it is for f64, and where sizes are not known.
// CHECK-LABEL: func.func private @dynamic(
// CHECK-SAME:  profuse.plan = ["LibraryProduct(kind='matmul', dtype='f64'
// CHECK-SAME:  bias=Matrix(argument=('input', 2), offset='0', dims=('s1',), strides=('1',)))"]
// CHECK-NOT:   gpu.func
func.func private @dynamic(%x: tensor<?x3xf64, {dims = ["s0", "3"], strides = "contiguous"}>, %w: tensor<3x?xf64, {dims = ["3", "s1"], strides = "contiguous"}>, %b: tensor<?xf64, {dims = ["s1"], strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<?x3xf64, {dims = ["s0", "3"], strides = "contiguous"}>, tensor<3x?xf64, {dims = ["3", "s1"], strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<?xf64, {dims = ["s1"], strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// Halves whose product is an f32 are as good as floats.
// CHECK-LABEL: func.func private @wide(
// CHECK-SAME:  profuse.plan = ["LibraryProduct(kind='matmul', dtype='bf16'
// CHECK-SAME:  wide=True, bias=Matrix(argument=('input', 2)
// CHECK-NOT:   gpu.func
func.func private @wide(%x: tensor<4x3xbf16, {strides = "contiguous"}>, %w: tensor<3x2xbf16, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.cast"(%x) {dtype = f32} : (tensor<4x3xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.cast"(%w) {dtype = f32} : (tensor<3x2xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.matmul"(%0, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.add"(%2, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %3 : !profuse.tensor
}

// A batch whose right operand is one matrix is one product of more rows; the columns are the same.
// CHECK-LABEL: func.func private @batch_of_rows(
// CHECK-SAME:  profuse.plan = ["LibraryProduct(kind='matmul', dtype='f32'
// CHECK-SAME:  output=Matrix(argument=('output', 0), offset='0', dims=('20', '2')
// CHECK-SAME:  bias=Matrix(argument=('input', 2), offset='0', dims=('2',), strides=('1',)))"]
// CHECK-NOT:   gpu.func
func.func private @batch_of_rows(%x: tensor<5x4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<5x4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// CHECK-LABEL: func.func private @batch(
// CHECK-SAME:  profuse.plan = ["LibraryProduct(kind='batch_matmul', dtype='f32'
// CHECK-SAME:  output=Matrix(argument=('output', 0), offset='0', dims=('5', '4', '2')
// CHECK-SAME:  bias=Matrix(argument=('input', 2), offset='0', dims=('2',), strides=('1',)))"]
// CHECK-NOT:   gpu.func
func.func private @batch(%x: tensor<5x4x3xf32, {strides = "contiguous"}>, %w: tensor<5x3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<5x4x3xf32, {strides = "contiguous"}>, tensor<5x3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// A bias of rank 2 with one row is a vector all the same.
// CHECK-LABEL: func.func private @row(
// CHECK-SAME:  profuse.plan = ["LibraryProduct(
// CHECK-SAME:  bias=Matrix(argument=('input', 2), offset='0', dims=('2',), strides=('1',)))"]
// CHECK-NOT:   gpu.func
func.func private @row(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<1x2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<1x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// The library reads neighbours: a bias with gaps is copied first, by a kernel of its size.
// CHECK-LABEL: func.func private @gaps(
// CHECK-SAME:  Launch(kernel='gaps_nest0'
// CHECK-SAME:  arguments=(('input', 2), ('workspace', '0', 'f32'))
// CHECK-SAME:  LibraryProduct({{.*}} output=Matrix(argument=('output', 0)
// CHECK-SAME:  bias=Matrix(argument=('workspace', '0', 'f32'), offset='0', dims=('2',), strides=('1',)))"]
// CHECK:       gpu.func @gaps_nest0
func.func private @gaps(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = ["3"]}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xf32, {strides = ["3"]}>) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// Any bias may be computed by us first.
// CHECK-LABEL: func.func private @computed(
// CHECK-SAME:  Launch(kernel='computed_nest0'
// CHECK-SAME:  LibraryProduct({{.*}} bias=Matrix(argument=('workspace', '0', 'f32')
func.func private @computed(%x: tensor<4x3xf32, {strides = "contiguous"}>, %w: tensor<3x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x3xf32, {strides = "contiguous"}>, tensor<3x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.tanh"(%b) : (tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.add"(%0, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %2 : !profuse.tensor
}

// What the next product reads has to be in memory: each of two layers takes in its bias.
// CHECK-LABEL: func.func private @layers(
// CHECK-SAME:  profuse.plan = ["LibraryProduct({{[^"]*}} output=Matrix(argument=('workspace', '0', 'f32'){{[^"]*}} bias=Matrix(argument=('input', 2)
// CHECK-SAME:  "LibraryProduct(kind='matmul', dtype='f32', left=Matrix(argument=('workspace', '0', 'f32'){{[^"]*}} bias=Matrix(argument=('input', 2)
// CHECK-NOT:   gpu.func
func.func private @layers(%x: tensor<4x2xf32, {strides = "contiguous"}>, %w: tensor<2x2xf32, {strides = "contiguous"}>, %b: tensor<2xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.matmul"(%x, %w) : (tensor<4x2xf32, {strides = "contiguous"}>, tensor<2x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.add"(%0, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.matmul"(%1, %w) : (!profuse.tensor, tensor<2x2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %3 = "profuse.add"(%2, %b) : (!profuse.tensor, tensor<2xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %3 : !profuse.tensor
}

// The rounding that follows is the library's as well: halves in, a half as the bias, halves out.
// CHECK-LABEL: func.func private @rounded_once(
// CHECK-SAME:  profuse.plan = ["LibraryProduct(kind='matmul', dtype='bf16'
// CHECK-SAME:  output=Matrix(argument=('output', 0), {{.*}} wide=False, bias=Matrix(argument=('input', 2), offset='0', dims=('2',), strides=('1',)))"]
// CHECK-NOT:   gpu.func
func.func private @rounded_once(%x: tensor<4x3xbf16, {strides = "contiguous"}>, %w: tensor<3x2xbf16, {strides = "contiguous"}>, %b: tensor<2xbf16, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %0 = "profuse.cast"(%x) {dtype = f32} : (tensor<4x3xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %1 = "profuse.cast"(%w) {dtype = f32} : (tensor<3x2xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.cast"(%b) {dtype = f32} : (tensor<2xbf16, {strides = "contiguous"}>) -> !profuse.tensor
  %3 = "profuse.matmul"(%0, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %4 = "profuse.add"(%3, %2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %5 = "profuse.cast"(%4) {dtype = bf16} : (!profuse.tensor) -> !profuse.tensor
  return %5 : !profuse.tensor
}
