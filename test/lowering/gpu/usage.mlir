// REQUIRES: ptxas
// RUN: profuse-opt -p 'to-gpu,gpu-to-nvvm{chip=sm_80}' --emit usage %s | FileCheck %s -DCHIP=sm_80
// RUN: profuse-opt -p 'to-gpu,gpu-to-nvvm{chip=sm_90}' --emit usage %s | FileCheck %s -DCHIP=sm_90

// What ptxas says of each kernel; `test_gpu_fused.py` asks for every fused graph.
// CHECK:      softmax_nest0 [[CHIP]]: {{[0-9]+}} registers, 0 bytes spilled, 0 bytes of stack, 32 bytes shared
// CHECK-NEXT: softmax_nest0_general [[CHIP]]: {{[0-9]+}} registers, 0 bytes spilled, 0 bytes of stack, 32
// CHECK-NEXT: column_sum_nest0 [[CHIP]]: {{[0-9]+}} registers, 0 bytes spilled, 0 bytes of stack, 4096 bytes shared
// CHECK-NEXT: column_sum_nest0_chunks [[CHIP]]: {{[0-9]+}} registers
// CHECK-NEXT: column_sum_nest0_general
// CHECK-NEXT: column_sum_nest0_general_chunks
func.func private @softmax(%0: tensor<1024x1024xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.max"(%0) {axes = array<i64: 1>, keepdims = true} : (tensor<1024x1024xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sub"(%0, %1) : (tensor<1024x1024xf32, {strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.exp"(%2) : (!profuse.tensor) -> !profuse.tensor
  %4 = "profuse.sum"(%3) {axes = array<i64: 1>, keepdims = true} : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.div"(%3, %4) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %5 : !profuse.tensor
}

func.func private @column_sum(%0: tensor<1024x1024xf32, {strides = "contiguous"}>) -> (!profuse.tensor) {
  %1 = "profuse.square"(%0) : (tensor<1024x1024xf32, {strides = "contiguous"}>) -> !profuse.tensor
  %2 = "profuse.sum"(%1) {axes = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return %2 : !profuse.tensor
}
