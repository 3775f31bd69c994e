// R1.24, R1.26: writes to memory of the graph's own are let through, unchanged.
// RUN: profuse-opt %s --pass-pipeline=in-place-check --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t

// STATS: in-place-check: 3 writes-checked
// CHECK-LABEL: func.func @own(
// CHECK-NEXT:    %[[Y:.*]] = "profuse.copy"(%{{.*}})
// CHECK-NEXT:    "profuse.exp_"(%[[Y]])
// CHECK-NEXT:    %[[ROW:.*]] = "profuse.pick"(%[[Y]])
// CHECK-NEXT:    "profuse.add_"(%[[ROW]], %{{.*}})
// CHECK-NEXT:    return %[[Y]]
func.func @own(%x: tensor<3x4xf32>, %r: tensor<4xf32>) -> tensor<3x4xf32> {
  %y = "profuse.copy"(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %0 = "profuse.exp_"(%y) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %row = "profuse.pick"(%y) {index = 1} : (tensor<3x4xf32>) -> tensor<4xf32>
  %1 = "profuse.add_"(%row, %r) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<3x4xf32>
}

// What a branch yields may be either: both are the graph's own.
// CHECK-LABEL: func.func @branches(
// CHECK:         "profuse.exp_"
func.func @branches(%x: tensor<3xf32>, %c: i1) -> tensor<3xf32> {
  %y = scf.if %c -> (tensor<3xf32>) {
    %0 = "profuse.copy"(%x) : (tensor<3xf32>) -> tensor<3xf32>
    scf.yield %0 : tensor<3xf32>
  } else {
    %1 = "profuse.neg"(%x) : (tensor<3xf32>) -> tensor<3xf32>
    scf.yield %1 : tensor<3xf32>
  }
  %2 = "profuse.exp_"(%y) : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
