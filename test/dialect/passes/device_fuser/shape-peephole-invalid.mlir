// RUN: not profuse-opt %s --pass-pipeline='shape-peephole{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not profuse-opt %s --pass-pipeline=shape-peephole 2>&1 | FileCheck %s

// OPTION: profuse-opt: error: pass shape-peephole has no option 'all'
// CHECK: 'profuse.broadcast_sizes' operand 1 must be of type !profuse.ints
func.func @f(%a: !profuse.ints, %x: !profuse.tensor) -> !profuse.ints {
  %0 = "profuse.broadcast_sizes"(%a, %x) : (!profuse.ints, !profuse.tensor) -> !profuse.ints
  return %0 : !profuse.ints
}
