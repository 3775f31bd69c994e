// RUN: rm -rf %t && profuse-opt %s -p 'export-fallbacks{to=%t}' --stats 2>&1 | FileCheck %s
// RUN: profuse-opt %t/main-fallback_0.mlir --verify-each | FileCheck %s --check-prefix=FILE
// RUN: profuse-opt %s -p export-fallbacks --stats 2>&1 | FileCheck %s --check-prefix=NONE

// R3.1 step 15: the graph stays as it is.
// CHECK: 1 fallbacks-exported
// CHECK-LABEL: func.func @main(
// CHECK:         scf.if
// CHECK:         "profuse.fallback_graph"
// CHECK:       func.func private @fallback_0
// NONE-NOT:    fallbacks-exported

// The file is a module of its own, with what the fallback calls.
// FILE-LABEL:  func.func @fallback_0(
// FILE-NEXT:     "profuse.fallback_graph"(%{{.*}}) {callee = @inner}
// FILE:        func.func private @inner(
// FILE-NEXT:     "profuse.tanh"
// FILE-NOT:    @device_0
// FILE-NOT:    @main
func.func @main(%x: !profuse.tensor) -> !profuse.tensor {
  %c:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r = scf.if %c#1 -> !profuse.tensor {
    %g = "profuse.cuda_group"(%c#0) {callee = @device_0} : (tensor<?xf32>) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  return %r : !profuse.tensor
}
func.func private @device_0(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.fallback_graph"(%x) {callee = @inner} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @inner(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
