// RUN: not profuse-opt %s -p 'form-fusions{min-size=two}' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not profuse-opt %s -p 'form-fusions{size=2}' 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: profuse-opt %s -p form-fusions --verify-diagnostics

// VALUE: min-size
// NAME: form-fusions{{.*}}size

// expected-error@+1 {{function @blocks has several blocks}}
func.func @blocks() {
  return
^bb1:
  return
}
