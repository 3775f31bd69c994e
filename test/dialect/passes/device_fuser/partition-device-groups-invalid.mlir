// RUN: not profuse-opt %s -p 'partition-device-groups{chip=a100}' 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not profuse-opt %s -p 'partition-device-groups{max-values=many}' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: profuse-opt %s -p partition-device-groups --verify-diagnostics --split-input-file

// CHIP: chip='a100' names no CUDA device
// VALUE: max-values

!t = tensor<4x8xf32, {device = "cuda:0"}>
func.func @foreign(%x: !t, %axes: !profuse.ints) -> !profuse.tensor {
  %a = "profuse.tanh"(%x) : (!t) -> !t
  // expected-error@+1 {{a constant depends on a value that no observer has seen}}
  %k = "profuse.constant"(%axes) {value = array<i64: 1>} : (!profuse.ints) -> !profuse.ints
  %s = "profuse.late"(%a, %k) {op = "sum", names = ["axes"]} : (!t, !profuse.ints) -> !profuse.tensor
  return %s : !profuse.tensor
}
