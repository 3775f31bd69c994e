// RUN: not profuse-opt %s -p 'propagate-shapes{deep=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s -p propagate-shapes --verify-diagnostics

// OPTION: pass propagate-shapes has no option 'deep'

// expected-error@+1 {{function @blocks has several blocks}}
func.func @blocks() {
  return
^bb1:
  return
}
