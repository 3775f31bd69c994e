// RUN: profuse-opt %s | FileCheck %s
// RUN: profuse-opt %s | profuse-opt | FileCheck %s
// RUN: profuse-opt %s -p dce,cse-profuse,canonicalize-profuse,fold,canonicalize,cse | FileCheck %s
// RUN: profuse-opt %s -p form-fusions,insert-guards --verify-each | FileCheck %s --check-prefix=FUSED

// R1.1: a warning is no value, yet neither dead nor redundant; it stays where it stands.
// CHECK-LABEL: func.func @warn(
// CHECK:         "profuse.warn"() {message = "careful", site = "model.py:3"} : () -> ()
// CHECK-NEXT:    scf.for
// CHECK:           "profuse.warn"() {message = "careful", site = "model.py:3"} : () -> ()
// CHECK:         }
// CHECK:         "profuse.warn"() {message = "no site"} : () -> ()
// CHECK-NEXT:    return
func.func @warn(%x: !profuse.tensor, %n: i64, %m: i64) -> !profuse.tensor {
  "profuse.warn"() {message = "careful", site = "model.py:3"} : () -> ()
  %r = scf.for %i = %n to %m step %n iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    "profuse.warn"() {message = "careful", site = "model.py:3"} : () -> ()
    %b = "profuse.exp"(%a) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %b : !profuse.tensor
  }
  "profuse.warn"() {message = "no site"} : () -> ()
  return %r : !profuse.tensor
}

// It joins no group, and keeps its neighbours from none.
// FUSED-LABEL: func.func @between(
// FUSED-NEXT:    "profuse.type_check"
// FUSED:         "profuse.fusion_group"
// FUSED:         "profuse.warn"() {message = "between"}
// FUSED-NEXT:    return
// FUSED:       func.func private @fusion_0
// FUSED-NOT:     profuse.warn
// FUSED:         "profuse.exp"
// FUSED-NOT:     profuse.warn
// FUSED:         "profuse.tanh"
func.func @between(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  "profuse.warn"() {message = "between"} : () -> ()
  %1 = "profuse.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @require(
// CHECK:         "profuse.require"(%arg0, %arg1) {message = "none"} : (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
func.func @require(%x: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %0 = "profuse.require"(%x, %c) {message = "none"} : (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
