// RUN: profuse-opt %s | profuse-opt | FileCheck %s
// RUN: profuse-opt %s -p propagate-shapes | FileCheck %s --check-prefix=TYPES

// CHECK-LABEL: func.func @calls
// TYPES-LABEL: func.func @calls
func.func @calls(%a: tensor<4x4xf32>, %x: tensor<5xf64>, %k: i64) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) {
  // CHECK-NEXT: "profuse.host_call"(%arg0) {arguments = "x0", function = "numpy.linalg.inv"} : (tensor<4x4xf32>) -> !profuse.tensor
  // TYPES-NEXT: function = "numpy.linalg.inv"{{.*}} -> tensor<4x4xf32>
  %0 = "profuse.host_call"(%a) {function = "numpy.linalg.inv", arguments = "x0"} : (tensor<4x4xf32>) -> !profuse.tensor
  // CHECK-NEXT: count = 3 : i64, function = "numpy.linalg.svd"
  // TYPES-NEXT: function = "numpy.linalg.svd"{{.*}} -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>)
  %1:3 = "profuse.host_call"(%a) {function = "numpy.linalg.svd", arguments = "x0", count = 3} : (tensor<4x4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // TYPES-NEXT: function = "numpy.unique"{{.*}} -> tensor<?xf64>
  %2 = "profuse.host_call"(%x) {function = "numpy.unique", arguments = "x0"} : (tensor<5xf64>) -> !profuse.tensor
  // CHECK: arguments = "x0, x1", function = "numpy.partition"
  // TYPES-NEXT: function = "numpy.partition"{{.*}} -> tensor<5xf64>
  %3 = "profuse.host_call"(%x, %k) {function = "numpy.partition", arguments = "x0, x1"} : (tensor<5xf64>, i64) -> !profuse.tensor
  // CHECK: arguments = "(x0, x1), axis=-1", function = "numpy.lexsort"
  %4 = "profuse.host_call"(%x, %x) {function = "numpy.lexsort", arguments = "(x0, x1), axis=-1"} : (tensor<5xf64>, tensor<5xf64>) -> !profuse.tensor
  return %0, %1#0, %1#1, %1#2, %2, %3 : !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor
}
