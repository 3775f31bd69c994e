// RUN: profuse-opt -p dce %s | FileCheck %s

// Symbols count wherever in an attribute they stand.
// CHECK-COUNT-3: func.func
func.func @f() attributes {profuse.keep = {a = [@one], b = @two}} {
  return
}
func.func private @one() {
  return
}
func.func private @two() {
  return
}
