// RUN: not profuse-opt %s --no-verify -p dedupe-device-groups 2>&1 | FileCheck %s

// A group without a function is refused (R3.49).
// CHECK: no function @missing in this module
func.func @f(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.cuda_group"(%x) {callee = @missing} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
