// RUN: profuse-opt %s -p extract-constants | FileCheck %s --check-prefix=BEFORE
// RUN: profuse-opt %s -p extract-constants,specialize | FileCheck %s

// Types come from `specialize` alone; what nobody has observed, and does not follow, stays bare (R3.13). An
// op whose attributes are profiled values has the type that these make of it.
// BEFORE-LABEL: func.func @f
// BEFORE-SAME:    %{{[^:]*}}: !profuse.tensor, %{{[^:]*}}: !profuse.tensor
// BEFORE-NOT:     tensor<
// BEFORE:         profiled_type = tensor<4x8xf32>
// BEFORE-SAME:    (!profuse.tensor) -> !profuse.tensor
// BEFORE-NOT:     tensor<

// CHECK-LABEL: func.func @f
// CHECK-SAME:    %[[X:[^:]*]]: tensor<4x8xf32>, %[[Y:[^:]*]]: !profuse.tensor
// CHECK-NOT:     "profuse.profile"(
// CHECK:         %[[T:.*]] = "profuse.tanh"(%[[X]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK:         "profuse.late"(%[[T]], %{{.*}}) {{.*}} : (tensor<4x8xf32>, i1) -> tensor<1x1xf32>
// CHECK:         "profuse.late"(%[[T]], %{{.*}}) {{.*}} : (tensor<4x8xf32>, i1) -> !profuse.tensor
// CHECK:         "profuse.tanh"(%[[Y]]) : (!profuse.tensor) -> !profuse.tensor
// CHECK-NOT:     "profuse.profile"(
// CHECK:         return
func.func @f(%x: !profuse.tensor, %y: !profuse.tensor, %k: i1, %l: i1) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0 = "profuse.profile_value"(%k) {kind = "bool", profiled_bool = true, site = 2 : i64} : (i1) -> i1
  %1 = "profuse.profile"(%x) {profiled_type = tensor<4x8xf32>, site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.tanh"(%1) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.late"(%2, %0) {op = "sum", names = ["keepdims"]} : (!profuse.tensor, i1) -> !profuse.tensor
  %4 = "profuse.late"(%2, %l) {op = "sum", names = ["keepdims"]} : (!profuse.tensor, i1) -> !profuse.tensor
  %5 = "profuse.profile"(%y) {site = 1 : i64} : (!profuse.tensor) -> !profuse.tensor
  %6 = "profuse.tanh"(%5) : (!profuse.tensor) -> !profuse.tensor
  return %3, %4, %6 : !profuse.tensor, !profuse.tensor, !profuse.tensor
}
