// RUN: profuse-opt %s -p repair-batch-norm --stats --verify-each 2>&1 | FileCheck %s
// RUN: not profuse-opt %s --pass-pipeline='repair-batch-norm{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: profuse-opt: error: pass repair-batch-norm has no option 'all'

// A reserve that the group makes itself, or that more than the backward op reads, stays: it is what the op takes.
// CHECK: 2 stays whole: batch_norm_index_backward: its reserve is computed in the group
// CHECK-LABEL: func.func @both(
// CHECK-NEXT:    %[[G:.*]]:2 = "profuse.cuda_group"(%{{.*}}, %{{.*}}) {callee = @device_0}
// CHECK-NEXT:    return %[[G]]#0, %[[G]]#1
func.func @both(%x: !profuse.tensor, %u: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %g:2 = "profuse.cuda_group"(%x, %u) {callee = @device_0} : (!profuse.tensor, !profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
  return %g#0, %g#1 : !profuse.tensor, !profuse.tensor
}
func.func private @device_0(%x: tensor<2x3xf32>, %u: tensor<0xui8>) -> (tensor<2x3xf32>, tensor<0xui8>) {
  %0:7 = "profuse.batch_norm_index"(%x) {training = true} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<0xui8>, i64, !profuse.tensor, !profuse.tensor)
  %1:3 = "profuse.batch_norm_index_backward"(%0#4, %x, %0#0, %0#1, %0#2, %0#3) {given = 24 : i64, training = true} : (i64, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<0xui8>) -> (tensor<2x3xf32>, !profuse.tensor, tensor<3xf32>)
  %2:3 = "profuse.batch_norm_index_backward"(%0#4, %x, %1#0, %0#1, %0#2, %u) {given = 24 : i64, training = true} : (i64, tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<0xui8>) -> (tensor<2x3xf32>, !profuse.tensor, tensor<3xf32>)
  %3 = "profuse.add"(%u, %u) : (tensor<0xui8>, tensor<0xui8>) -> tensor<0xui8>
  return %2#0, %3 : tensor<2x3xf32>, tensor<0xui8>
}
