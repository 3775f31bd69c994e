// RUN: not profuse-opt %s --pass-pipeline='unroll-loops{factor=half}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not profuse-opt %s --pass-pipeline=unroll-loops 2>&1 | FileCheck %s

// OPTION: option 'factor' must be an integer, not 'half'
// CHECK: unroll-loops-invalid.mlir:[[#@LINE+2]]:8: error: 'scf.for' type 'i32' is not a profuse type
func.func @f(%x: !profuse.tensor, %n: i32) {
  %r = "scf.for"(%n, %n, %n, %x) ({
  ^bb0(%i: i32, %a: !profuse.tensor):
    "scf.yield"(%a) : (!profuse.tensor) -> ()
  }) : (i32, i32, i32, !profuse.tensor) -> !profuse.tensor
  return
}
