// RUN: not profuse-opt %s -p 'export-fallbacks{to=%s}' 2>&1 | FileCheck %s

// A file where the folder should be is an error that says so.
// CHECK: a fallback cannot be written to
// CHECK-SAME: main-fallback_0.mlir
func.func @main(%x: !profuse.tensor) -> !profuse.tensor {
  %f = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
  return %f : !profuse.tensor
}
func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
