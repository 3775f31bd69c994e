// RUN: not profuse-opt %s -p 'form-diff-graphs{depth=2}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s -p form-diff-graphs --verify-diagnostics

// OPTION: pass form-diff-graphs has no option 'depth'

// expected-error@+1 {{function @blocks has several blocks}}
func.func @blocks() {
  return
^bb1:
  return
}
