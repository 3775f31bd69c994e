// RUN: profuse-opt %s -p fold,canonicalize-profuse,cse-profuse,pool-constants,peephole,decompose,dce | FileCheck %s
// RUN: profuse-opt %s -p pool-constants | FileCheck %s
// RUN: profuse-opt %s -p cse-profuse | FileCheck %s
// RUN: profuse-opt %s -p fold | FileCheck %s
// RUN: profuse-opt %s -p canonicalize-profuse | FileCheck %s
// RUN: profuse-opt %s -p fuse-loops,form-fusions | FileCheck %s

// A conditional constant stays where it is, whatever equals it: what it depends on is told from it (R3.6).
// CHECK-LABEL: func.func @conditional
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x8xf32>, %[[K:[^:]*]]: i1
// CHECK:         %[[T:.*]] = "profuse.tanh"(%[[X]])
// CHECK-NEXT:    %[[A:.*]] = "profuse.profile_value"(%[[K]])
// CHECK-NEXT:    %[[C:.*]] = "profuse.constant"(%[[A]]) {value = true} : (i1) -> i1
// CHECK-NEXT:    %[[D:.*]] = "profuse.constant"(%[[A]]) {value = true} : (i1) -> i1
// CHECK-NEXT:    %[[Y:.*]] = "profuse.late"(%[[T]], %[[C]])
// CHECK-NEXT:    %[[Z:.*]] = "profuse.late"(%[[X]], %[[D]])
// CHECK-NEXT:    %[[I:.*]] = scf.if %[[C]]
// CHECK:         return %[[Y]], %[[Z]], %[[I]]
func.func @conditional(%x: tensor<4x8xf32>, %k: i1) -> (!profuse.tensor, !profuse.tensor, tensor<4x8xf32>) {
  %0 = "profuse.tanh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "profuse.profile_value"(%k) {site = 0 : i64} : (i1) -> i1
  %2 = "profuse.constant"(%1) {value = true} : (i1) -> i1
  %3 = "profuse.constant"(%1) {value = true} : (i1) -> i1
  %4 = "profuse.late"(%0, %2) {op = "sum", names = ["keepdims"]} : (tensor<4x8xf32>, i1) -> !profuse.tensor
  %5 = "profuse.late"(%x, %3) {op = "sum", names = ["keepdims"]} : (tensor<4x8xf32>, i1) -> !profuse.tensor
  %6 = scf.if %2 -> (tensor<4x8xf32>) {
    scf.yield %x : tensor<4x8xf32>
  } else {
    scf.yield %0 : tensor<4x8xf32>
  }
  return %4, %5, %6 : !profuse.tensor, !profuse.tensor, tensor<4x8xf32>
}
