// RUN: profuse-opt -p to-linalg,canonicalize,cse %s | FileCheck %s

// Equal sizes are one value; the mean of a symbolic axis divides by it.
// CHECK-LABEL: func.func @softmax
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x8xf32> {profuse.dims = ["s0", "8"], profuse.strides = "contiguous"}
// CHECK-SAME:    %[[S0:[a-z0-9]+]]: index) -> (tensor<?x8xf32> {profuse.dims = ["s0", "8"]})
// CHECK-SAME:    attributes {profuse.symbols = ["s0"]}
// CHECK-DAG:     %[[INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK:         linalg.fill ins(%[[INF]] : f32)
// CHECK:         linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]{{.*}} ins(%[[X]] : tensor<?x8xf32>)
// CHECK:           arith.maximumf %{{.*}}, %{{.*}} : f32
// CHECK:         arith.subf %{{.*}}, %{{.*}} fastmath<contract> : f32
// CHECK:         math.exp
// CHECK:         arith.addf %{{.*}}, %{{.*}} fastmath<reassoc,contract> : f32
// CHECK:         arith.divf %{{.*}}, %{{.*}} : f32
func.func @softmax(%x: tensor<?x8xf32, {dims = ["s0", "8"], strides = "contiguous"}>) -> tensor<?x8xf32, {dims = ["s0", "8"]}> {
  %m = "profuse.max"(%x) {axes = array<i64: 1>, keepdims = true} : (tensor<?x8xf32, {dims = ["s0", "8"], strides = "contiguous"}>) -> !profuse.tensor
  %d = "profuse.sub"(%x, %m) : (tensor<?x8xf32, {dims = ["s0", "8"], strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %e = "profuse.exp"(%d) : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.sum"(%e) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %q = "profuse.div"(%e, %s) : (!profuse.tensor, !profuse.tensor) -> tensor<?x8xf32, {dims = ["s0", "8"]}>
  return %q : tensor<?x8xf32, {dims = ["s0", "8"]}>
}

// Bool is stored in bytes; unsigned integers use unsigned operations and no idiv sees a zero.
// CHECK-LABEL: func.func @unsigned
// CHECK-SAME:    tensor<4xi8> {profuse.dims = ["4"], profuse.dtype = "u8", profuse.strides = ["?"]}
// CHECK-SAME:    -> (tensor<4xi8> {profuse.dims = ["4"], profuse.dtype = "bool"})
// CHECK:         arith.cmpi eq
// CHECK:         arith.select
// CHECK:         arith.divui
// CHECK:         arith.cmpi ult
// CHECK:         arith.extui %{{.*}} : i1 to i8
func.func @unsigned(%a: tensor<4xui8>, %b: tensor<4xui8>) -> tensor<4xi1> {
  %q = "profuse.floor_div"(%a, %b) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %c = "profuse.lt"(%q, %b) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
  return %c : tensor<4xi1>
}

// A Python number is a 0-d tensor, read and converted outside the loops.
// CHECK-LABEL: func.func @number
// CHECK-SAME:    %[[A:[a-z0-9]+]]: tensor<f64> {profuse.scalar}
// CHECK:         %[[E:[a-z0-9_]+]] = tensor.extract %[[A]][] : tensor<f64>
// CHECK:         %[[T:[a-z0-9_]+]] = arith.truncf %[[E]] : f64 to f32
// CHECK:         linalg.generic
// CHECK:           arith.mulf %{{.*}}, %[[T]]
func.func @number(%x: tensor<3xf32>, %a: f64) -> tensor<3xf32> {
  %c = "profuse.cast"(%a) {dtype = f32} : (f64) -> tensor<f32>
  %y = "profuse.mul"(%x, %c) : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}

// A product that two operations read is rounded, so that both read one number, also through a
// reshape. One with a single reader may be fused with it.
// CHECK-LABEL: func.func @products
// CHECK:         arith.mulf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : f32
// CHECK:         arith.mulf %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} fastmath<contract> : f32
func.func @products(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> (tensor<12xf32>, tensor<f32>) {
  %p = "profuse.mul"(%x, %y) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %r = "profuse.reshape"(%p) {shape = array<i64: 12>} : (tensor<4x3xf32>) -> tensor<12xf32>
  %s = "profuse.sum"(%r) : (tensor<12xf32>) -> tensor<f32>
  %d = "profuse.sub"(%r, %s) : (tensor<12xf32>, tensor<f32>) -> tensor<12xf32>
  %q = "profuse.mul"(%d, %s) : (tensor<12xf32>, tensor<f32>) -> tensor<12xf32>
  %z = "profuse.add"(%q, %s) : (tensor<12xf32>, tensor<f32>) -> tensor<12xf32>
  return %z, %s : tensor<12xf32>, tensor<f32>
}
