// Chips that LLVM would replace by another, or compile nonsense for, are refused.
// RUN: not profuse-opt %s -p 'to-gpu,gpu-to-nvvm{chip=sm_999}' 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: error: pass gpu-to-nvvm failed: there are no kernels for 'sm_999'
// RUN: not profuse-opt %s -p 'to-gpu,gpu-to-nvvm{chip=sm_70}' 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: pass gpu-to-nvvm failed: there are no kernels for 'sm_70'

// Only what has been lowered can be printed.
// RUN: not profuse-opt %s -p to-gpu --emit ptx 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: no kernels to print as ptx (run a pipeline that ends in gpu-to-nvvm)
func.func @f(%x: tensor<4xf32, {strides = "contiguous"}>) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (tensor<4xf32, {strides = "contiguous"}>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
