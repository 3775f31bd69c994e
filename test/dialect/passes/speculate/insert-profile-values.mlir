// RUN: profuse-opt %s -p 'insert-profile{values=true}' | FileCheck %s
// RUN: profuse-opt %s -p insert-profile | FileCheck %s --check-prefix=TENSORS

// Values that are given to attributes are observed behind their definition, one observer per value and kind,
// unless they are constants, or the op is none whose attribute is speculated on (R3.5).
// TENSORS-NOT:   profuse.profile_value
// CHECK-LABEL: func.func @f
// CHECK-SAME:    %[[X:[^:]*]]: !profuse.tensor, %[[S:[^:]*]]: !profuse.ints, %[[K:[^:]*]]: i1, %[[N:[^:]*]]: i64
// CHECK:         %[[SI:.*]] = "profuse.profile_value"(%[[S]]) {kind = "int_list", site = [[#SITE:]] : i64}
// CHECK-NEXT:    %[[SV:.*]] = "profuse.profile_value"(%[[S]]) {kind = "view_size", site = [[#SITE+1]] : i64}
// CHECK-NEXT:    %[[KB:.*]] = "profuse.profile_value"(%[[K]]) {kind = "bool", site = [[#SITE+2]] : i64}
// CHECK-NEXT:    %[[NI:.*]] = "profuse.profile_value"(%[[N]]) {kind = "int", site = [[#SITE+3]] : i64}
// CHECK:         %[[C:.*]] = "profuse.constant"()
// CHECK:         "profuse.late"(%{{.*}}, %[[SI]], %[[KB]]) {names = ["axes", "keepdims"], op = "sum"}
// CHECK:         "profuse.late"(%{{.*}}, %[[SV]]) {names = ["shape"], op = "reshape"}
// CHECK:         "profuse.late"(%{{.*}}, %[[NI]], %[[C]]) {names = ["axis1", "axis2"], op = "swapaxes"}
// CHECK:         "profuse.late"(%{{.*}}, %[[N]]) {names = ["axis"], op = "cumsum"}
// CHECK:         "profuse.late"(%{{.*}}, %[[NI]]) {names = ["dtype"], op = "cast"}
func.func @f(%x: !profuse.tensor, %s: !profuse.ints, %k: i1, %n: i64) -> !profuse.tensor {
  %c = "profuse.constant"() {value = 0 : i64} : () -> i64
  %0 = "profuse.late"(%x, %s, %k) {op = "sum", names = ["axes", "keepdims"]} : (!profuse.tensor, !profuse.ints, i1) -> !profuse.tensor
  %1 = "profuse.late"(%0, %s) {op = "reshape", names = ["shape"]} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  %2 = "profuse.late"(%1, %n, %c) {op = "swapaxes", names = ["axis1", "axis2"]} : (!profuse.tensor, i64, i64) -> !profuse.tensor
  %3 = "profuse.late"(%2, %n) {op = "cumsum", names = ["axis"]} : (!profuse.tensor, i64) -> !profuse.tensor
  %4 = "profuse.late"(%3, %n) {op = "cast", names = ["dtype"]} : (!profuse.tensor, i64) -> !profuse.tensor
  return %4 : !profuse.tensor
}
