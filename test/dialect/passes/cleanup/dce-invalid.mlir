// RUN: not profuse-opt -p "dce{deep=true}" %s 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not profuse-opt -p "func.func(dce)" %s 2>&1 | FileCheck %s --check-prefix=NESTED

// OPTION: profuse-opt: error: pass dce has no option 'deep' (options of dce: none)
// NESTED: profuse-opt: error: pass dce runs on a module and cannot stand inside func.func(…)
func.func @f() {
  return
}
