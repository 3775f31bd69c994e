// RUN: not profuse-opt %s --pass-pipeline='lower-lists{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=lower-lists --verify-diagnostics

// OPTION: profuse-opt: error: pass lower-lists has no option 'all'
func.func @f(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.list_unpack' operand 0 must be a list, not !profuse.tensor}}
  "profuse.list_unpack"(%x) : (!profuse.tensor) -> ()
  return
}
