// RUN: not profuse-opt %s -p 'fuse-loops{dynamic=2}' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not profuse-opt %s -p 'fuse-loops{loops=2}' 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: profuse-opt %s -p fuse-loops --verify-diagnostics

// VALUE: dynamic
// NAME: fuse-loops{{.*}}loops

// expected-error@+1 {{function @blocks has several blocks}}
func.func @blocks() {
  return
^bb1:
  return
}
