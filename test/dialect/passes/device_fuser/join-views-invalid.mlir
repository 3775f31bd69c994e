// RUN: not profuse-opt %s --pass-pipeline='join-views{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not profuse-opt %s --pass-pipeline=join-views 2>&1 | FileCheck %s

// OPTION: profuse-opt: error: pass join-views has no option 'all'
// CHECK: no function @nowhere in the module
func.func @f(%x: tensor<4x8xf32>) -> !profuse.tensor {
  %0 = "profuse.cuda_group"(%x) {callee = @nowhere} : (tensor<4x8xf32>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
