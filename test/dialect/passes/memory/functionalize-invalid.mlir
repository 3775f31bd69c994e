// RUN: not profuse-opt -p functionalize %s 2>&1 | FileCheck %s
// RUN: not profuse-opt -p "functionalize{all=true}" %s 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: profuse-opt: error: pass functionalize has no option 'all'
// CHECK: functionalize-invalid.mlir:[[#@LINE+2]]:8: error: 'profuse.exp_' may write memory of an argument
func.func @f(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp_"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %x : !profuse.tensor
}
