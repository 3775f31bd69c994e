// RUN: profuse-opt %s -p 'form-fusions{min-size=1 leave=cuda}' | FileCheck %s --check-prefixes=CHECK,CUDA
// RUN: profuse-opt %s -p 'form-fusions{min-size=1 leave=all}' | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: profuse-opt %s -p 'form-fusions{min-size=1}' | FileCheck %s --check-prefixes=CHECK,NONE
// RUN: profuse-opt %s -p 'fuse-loops{leave=cuda},form-fusions{min-size=1 leave=cuda}' --stats 2>&1 | FileCheck %s --check-prefix=TOLD
// TOLD-DAG: 2 left: tanh: the fuser of device groups takes it
// TOLD-DAG: 1 a loop runs round by round: the fuser of device groups takes it
// RUN: not profuse-opt %s -p 'form-fusions{leave=gpu}' 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: leave='gpu' names no devices

// A7: ops of the devices that are named are left to the fuser of device groups, with a reason.
// CHECK-LABEL: func.func @on_device
// CUDA-NOT:      fusion_group
// ALL-NOT:       fusion_group
// NONE:          profuse.fusion_group
func.func @on_device(%x: tensor<4xf32, {device = "cuda:0"}>) -> tensor<4xf32, {device = "cuda:0"}> {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32, {device = "cuda:0"}>) -> tensor<4xf32, {device = "cuda:0"}>
  return %0 : tensor<4xf32, {device = "cuda:0"}>
}

// CHECK-LABEL: func.func @on_host
// CUDA:          profuse.fusion_group
// ALL-NOT:       fusion_group
// NONE:          profuse.fusion_group
func.func @on_host(%x: tensor<4xf32, {device = "cpu"}>) -> tensor<4xf32, {device = "cpu"}> {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32, {device = "cpu"}>) -> tensor<4xf32, {device = "cpu"}>
  return %0 : tensor<4xf32, {device = "cpu"}>
}

// What is on no device goes with the function's arguments.
// CHECK-LABEL: func.func @iota
// CUDA-NOT:      fusion_group
// ALL-NOT:       fusion_group
// NONE:          profuse.fusion_group
func.func @iota(%x: tensor<4xf32, {device = "cuda:0"}>) -> tensor<4xi64> {
  %0 = "profuse.iota"() {shape = array<i64: 4>} : () -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// CHECK-LABEL: func.func @rounds
func.func @rounds(%x: tensor<4xf32, {device = "cuda:0"}>) -> tensor<4xf32, {device = "cuda:0"}> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 8 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<4xf32, {device = "cuda:0"}>) : i64 {
    %y = "profuse.tanh"(%a) : (tensor<4xf32, {device = "cuda:0"}>) -> tensor<4xf32, {device = "cuda:0"}>
    scf.yield %y : tensor<4xf32, {device = "cuda:0"}>
  }
  return %r : tensor<4xf32, {device = "cuda:0"}>
}
