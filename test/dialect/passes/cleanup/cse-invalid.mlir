// RUN: not profuse-opt -p cse-profuse %s 2>&1 | FileCheck %s
// RUN: not profuse-opt -p "cse-profuse{scope=block}" %s 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: profuse-opt: error: pass cse-profuse has no option 'scope'
// CHECK: cse-invalid.mlir:[[#@LINE+2]]:8: error: unknown op 'profuse.expp'; did you mean 'profuse.exp'
func.func @f(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.expp"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
