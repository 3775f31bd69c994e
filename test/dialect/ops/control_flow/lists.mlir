// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @lists
func.func @lists(%x: tensor<4xf32>, %y: !profuse.tensor) -> !profuse.list {
  // CHECK-NEXT: %[[E:.*]] = "profuse.list_construct"() : () -> !profuse.list
  %0 = "profuse.list_construct"() : () -> !profuse.list
  // CHECK-NEXT: %[[L:.*]] = "profuse.list_construct"(%arg0, %arg1) : (tensor<4xf32>, !profuse.tensor) -> !profuse.list
  %1 = "profuse.list_construct"(%x, %y) : (tensor<4xf32>, !profuse.tensor) -> !profuse.list
  // CHECK-NEXT: "profuse.list_append"(%[[L]], %arg0) : (!profuse.list, tensor<4xf32>) -> ()
  "profuse.list_append"(%1, %x) : (!profuse.list, tensor<4xf32>) -> ()
  // CHECK-NEXT: %{{.*}}:3 = "profuse.list_unpack"(%[[L]]) : (!profuse.list) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %2:3 = "profuse.list_unpack"(%1) : (!profuse.list) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %0 : !profuse.list
}
