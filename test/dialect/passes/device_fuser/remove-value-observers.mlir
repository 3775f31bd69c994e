// RUN: profuse-opt %s -p remove-value-observers | FileCheck %s

// Conditional constants give way to the values that they stand for, in private functions as well; other
// constants stay (R3.7).
// CHECK-LABEL: func.func @f
// CHECK-SAME:    %[[X:[^:]*]]: !profuse.tensor, %[[K:[^:]*]]: i1
// CHECK-NOT:     profile_value
// CHECK:         %[[N:.*]] = "profuse.constant"() {value = 0 : i64}
// CHECK-NEXT:    "profuse.late"(%[[X]], %[[N]], %[[K]])
// CHECK-NEXT:    return %{{.*}}, %[[K]]
func.func @f(%x: !profuse.tensor, %k: i1) -> (!profuse.tensor, i1) {
  %0 = "profuse.profile_value"(%k) {site = 0 : i64, profiled_bool = true} : (i1) -> i1
  %1 = "profuse.constant"(%0) {value = true} : (i1) -> i1
  %2 = "profuse.constant"() {value = 0 : i64} : () -> i64
  %3 = "profuse.late"(%x, %2, %1) {op = "sum", names = ["axes", "keepdims"]} : (!profuse.tensor, i64, i1) -> !profuse.tensor
  return %3, %0 : !profuse.tensor, i1
}

// CHECK-LABEL: func.func private @fallback
// CHECK-SAME:    %[[X:[^:]*]]: !profuse.tensor, %[[K:[^:]*]]: i1
// CHECK-NEXT:    "profuse.late"(%[[X]], %[[K]])
func.func private @fallback(%x: !profuse.tensor, %k: i1) -> !profuse.tensor {
  %0 = "profuse.constant"(%k) {value = true} : (i1) -> i1
  %1 = "profuse.late"(%x, %0) {op = "sum", names = ["keepdims"]} : (!profuse.tensor, i1) -> !profuse.tensor
  return %1 : !profuse.tensor
}
