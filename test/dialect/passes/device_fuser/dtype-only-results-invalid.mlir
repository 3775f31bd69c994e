// RUN: profuse-opt %s -p dtype-only-results --stats --verify-each 2>&1 | FileCheck %s
// RUN: not profuse-opt %s --pass-pipeline='dtype-only-results{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: profuse-opt: error: pass dtype-only-results has no option 'all'

// A result of a dtype that is not known stays, with the reason, instead of being an error (A10).
// CHECK: dtype-only-results: 1 a group returns more than is asked for: cuda_group: type is not known
// CHECK-LABEL: func.func @unknown(
// CHECK:         %[[R:.*]] = scf.if %{{.*}} -> (!profuse.tensor) {
// CHECK:         "profuse.dtype_code"(%[[R]])
func.func @unknown(%x: !profuse.tensor) -> i64 {
  %c:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r = scf.if %c#1 -> !profuse.tensor {
    %g = "profuse.cuda_group"(%c#0) {callee = @device_0} : (tensor<?xf32>) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  %d = "profuse.dtype_code"(%r) : (!profuse.tensor) -> i64
  return %d : i64
}
func.func private @device_0(%x: tensor<4xf32>) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @fallback_0(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
