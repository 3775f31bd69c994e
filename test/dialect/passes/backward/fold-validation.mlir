// R4.19: a check of gradients whose types are known to be those asked for is no more than its operands.
// RUN: profuse-opt %s --pass-pipeline=fold-validation --verify-each | FileCheck %s

// CHECK-LABEL: func.func @CompiledAutograd0(
// CHECK:         %[[G:.*]] = "profuse.list_get"
// CHECK-NEXT:    %[[X:.*]] = "profuse.list_get"
// CHECK-NOT:     "profuse.validate_grads"(%[[G]])
// CHECK:         %[[V:.*]] = "profuse.validate_grads"(%[[X]])
// CHECK:         return %[[G]], %[[V]]
func.func @CompiledAutograd0(%inputs: !profuse.list, %sizes: !profuse.list, %scalars: !profuse.list, %hooks: !profuse.list, %packed: !profuse.list) -> (tensor<3xf64>, tensor<3xf64>) {
  %g = "profuse.list_get"(%inputs) {index = 0 : i64} : (!profuse.list) -> tensor<3xf64>
  %x = "profuse.list_get"(%inputs) {index = 1 : i64} : (!profuse.list) -> !profuse.tensor
  %0 = "profuse.validate_grads"(%g) {types = [tensor<3xf64>]} : (tensor<3xf64>) -> tensor<3xf64>
  %1 = "profuse.validate_grads"(%x) {types = [tensor<3xf64>]} : (!profuse.tensor) -> tensor<3xf64>
  return %0, %1 : tensor<3xf64>, tensor<3xf64>
}
