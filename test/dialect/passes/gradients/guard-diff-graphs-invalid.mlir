// RUN: not profuse-opt %s -p 'guard-diff-graphs{dynamic=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s -p guard-diff-graphs --verify-diagnostics

// OPTION: pass guard-diff-graphs has no option 'dynamic'

func.func @missing(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{'profuse.diff_graph' no function @diff_0 in the module}}
  %0 = "profuse.diff_graph"(%x) {callee = @diff_0} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
