// RUN: not profuse-opt %s --pass-pipeline='clear-undefinedness{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=clear-undefinedness --verify-diagnostics

// OPTION: profuse-opt: error: pass clear-undefinedness has no option 'all'
// expected-error@+1 {{function @blocks has several blocks}}
func.func @blocks() {
  return
^bb1:
  return
}
