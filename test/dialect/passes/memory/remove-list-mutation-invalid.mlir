// RUN: not profuse-opt %s --pass-pipeline='remove-list-mutation{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=remove-list-mutation --verify-diagnostics

// OPTION: profuse-opt: error: pass remove-list-mutation has no option 'all'
func.func @f(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.list_append' operand 0 must be a list, not !profuse.tensor}}
  "profuse.list_append"(%x, %x) : (!profuse.tensor, !profuse.tensor) -> ()
  return
}
