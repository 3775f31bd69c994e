// Complex numbers are computed by parts; no product of parts is left to the back end to fuse.
// RUN: profuse-opt -p to-linalg,cse %s | FileCheck %s

// CHECK-LABEL: func.func @product
// CHECK-SAME:    tensor<4xcomplex<f32>> {profuse.dims = ["4"], profuse.dtype = "c64"
// CHECK:         linalg.generic
// CHECK-DAG:       %[[A:.*]] = complex.re %[[X:.*]] : complex<f32>
// CHECK-DAG:       %[[B:.*]] = complex.im %[[X]] : complex<f32>
// CHECK-DAG:       %[[C:.*]] = complex.re %[[Y:.*]] : complex<f32>
// CHECK-DAG:       %[[D:.*]] = complex.im %[[Y]] : complex<f32>
// CHECK:           %[[BD:.*]] = arith.mulf %[[B]], %[[D]] : f32
// CHECK:           %[[NEG:.*]] = arith.negf %[[BD]] : f32
// CHECK:           %[[RE:.*]] = math.fma %[[A]], %[[C]], %[[NEG]] : f32
// CHECK:           %[[BC:.*]] = arith.mulf %[[B]], %[[C]] : f32
// CHECK:           %[[IM:.*]] = math.fma %[[A]], %[[D]], %[[BC]] : f32
// CHECK:           complex.create %[[RE]], %[[IM]] : complex<f32>
func.func @product(%x: tensor<4xcomplex<f32>, {strides = "contiguous"}>, %y: tensor<4xcomplex<f32>, {strides = "contiguous"}>) -> tensor<4xcomplex<f32>> {
  %0 = "profuse.mul"(%x, %y) : (tensor<4xcomplex<f32>, {strides = "contiguous"}>, tensor<4xcomplex<f32>, {strides = "contiguous"}>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

// A sum has an accumulator for each part.
// CHECK-LABEL: func.func @sum
// CHECK:         linalg.generic {{.*}}iterator_types = ["reduction"]{{.*}} outs({{.*}} : tensor<f32>, tensor<f32>)
// CHECK:           arith.addf {{.*}} fastmath<reassoc,contract>
// CHECK:           arith.addf {{.*}} fastmath<reassoc,contract>
func.func @sum(%x: tensor<4xcomplex<f32>, {strides = "contiguous"}>) -> tensor<complex<f32>> {
  %0 = "profuse.sum"(%x) : (tensor<4xcomplex<f32>, {strides = "contiguous"}>) -> tensor<complex<f32>>
  return %0 : tensor<complex<f32>>
}
