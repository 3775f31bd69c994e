// R1.48: there are no quantised types to refuse.
// RUN: not profuse-opt %s --pass-pipeline=form-fusions 2>&1 | FileCheck %s

// CHECK: fusion-limits-invalid.mlir:[[#@LINE+2]]:8: error: 'profuse.exp' type {{.*}} is not a profuse type
func.func @quantised(%x: tensor<4x!quant.uniform<i8:f32, 1.0>>) {
  %0 = "profuse.exp"(%x) : (tensor<4x!quant.uniform<i8:f32, 1.0>>) -> tensor<4x!quant.uniform<i8:f32, 1.0>>
  return
}
