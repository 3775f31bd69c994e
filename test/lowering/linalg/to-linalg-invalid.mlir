// RUN: profuse-opt %s -p to-linalg --verify-diagnostics --split-input-file

func.func @complex(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-error@+1 {{no kernel is generated for asin of c64 values}}
  %0 = "profuse.asin"(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

func.func @unknown(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{the type of argument 0 is not known: tensor<?xf32>}}
  %0 = "profuse.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
