// RUN: profuse-opt %s -p insert-profile --verify-diagnostics

// expected-error@+1 {{function @blocks has several blocks}}
func.func @blocks() {
  return
^bb1:
  return
}
