// RUN: profuse-opt %s -p extract-constants | FileCheck %s
// RUN: profuse-opt %s -p extract-constants,specialize | FileCheck %s
// RUN: profuse-opt %s -p extract-constants,remove-value-observers | FileCheck %s --check-prefix=REMOVED
// RUN: profuse-opt %s -p extract-constants,specialize,remove-value-observers | FileCheck %s --check-prefix=REMOVED
// RUN: profuse-opt %s -p extract-constants --stats 2>&1 | FileCheck %s --check-prefix=REASON

// One conditional constant per kind of observed value; the first attribute that is there wins (R3.4). Each
// stands right behind its observer, whose result it depends on; all reads go to it (R3.6).
// CHECK-LABEL: func.func @kinds
// CHECK:         %[[A:.*]] = "profuse.profile_value"(%{{.*}}) {profiled_int_list = array<i64: 0, 1>, site = 0 : i64}
// CHECK-NEXT:    %[[AC:.*]] = "profuse.constant"(%[[A]]) {value = array<i64: 0, 1>} : (!profuse.ints) -> !profuse.ints
// CHECK-NEXT:    %[[B:.*]] = "profuse.profile_value"(%{{.*}}) {profiled_bool_list = array<i1: true, false>, site = 1 : i64}
// CHECK-NEXT:    %[[BC:.*]] = "profuse.constant"(%[[B]]) {value = array<i1: true, false>} : (!profuse.bools) -> !profuse.bools
// CHECK-NEXT:    %[[C:.*]] = "profuse.profile_value"(%{{.*}}) {profiled_reduction_size = array<i64: 4, 1>, site = 2 : i64}
// CHECK-NEXT:    %[[CC:.*]] = "profuse.constant"(%[[C]]) {value = array<i64: 4, 1>} : (!profuse.ints) -> !profuse.ints
// CHECK-NEXT:    %[[D:.*]] = "profuse.profile_value"(%{{.*}}) {profiled_view_size = array<i64: -1, 8>, site = 3 : i64}
// CHECK-NEXT:    %[[DC:.*]] = "profuse.constant"(%[[D]]) {value = array<i64: -1, 8>} : (!profuse.ints) -> !profuse.ints
// CHECK-NEXT:    %[[E:.*]] = "profuse.profile_value"(%{{.*}}) {profiled_bool = true, site = 4 : i64}
// CHECK-NEXT:    %[[EC:.*]] = "profuse.constant"(%[[E]]) {value = true} : (i1) -> i1
// CHECK-NEXT:    %[[F:.*]] = "profuse.profile_value"(%{{.*}}) {profiled_int = -2 : i64, site = 5 : i64}
// CHECK-NEXT:    %[[FC:.*]] = "profuse.constant"(%[[F]]) {value = -2 : i64} : (i64) -> i64
// CHECK-NEXT:    %[[G:.*]] = "profuse.profile_value"(%{{.*}}) {profiled_string = "tanh", site = 6 : i64}
// CHECK-NEXT:    %[[GC:.*]] = "profuse.constant"(%[[G]]) {value = "tanh"} : (!profuse.str) -> !profuse.str
// CHECK-NEXT:    return %[[AC]], %[[BC]], %[[CC]], %[[DC]], %[[EC]], %[[FC]], %[[GC]]

// Nothing is left of them in the end (R3.7).
// REMOVED-NOT:   profuse.profile_value
// REMOVED-NOT:   profuse.constant
// REMOVED:       return %arg0, %arg1, %arg0, %arg0, %arg2, %arg3, %arg4
func.func @kinds(%s: !profuse.ints, %b: !profuse.bools, %k: i1, %n: i64, %m: !profuse.str) -> (!profuse.ints, !profuse.bools, !profuse.ints, !profuse.ints, i1, i64, !profuse.str) {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64, profiled_int_list = array<i64: 0, 1>} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.profile_value"(%b) {site = 1 : i64, profiled_bool_list = array<i1: true, false>} : (!profuse.bools) -> !profuse.bools
  %2 = "profuse.profile_value"(%s) {site = 2 : i64, profiled_reduction_size = array<i64: 4, 1>} : (!profuse.ints) -> !profuse.ints
  %3 = "profuse.profile_value"(%s) {site = 3 : i64, profiled_view_size = array<i64: -1, 8>} : (!profuse.ints) -> !profuse.ints
  %4 = "profuse.profile_value"(%k) {site = 4 : i64, profiled_bool = true} : (i1) -> i1
  %5 = "profuse.profile_value"(%n) {site = 5 : i64, profiled_int = -2 : i64} : (i64) -> i64
  %6 = "profuse.profile_value"(%m) {site = 6 : i64, profiled_string = "tanh"} : (!profuse.str) -> !profuse.str
  return %0, %1, %2, %3, %4, %5, %6 : !profuse.ints, !profuse.bools, !profuse.ints, !profuse.ints, i1, i64, !profuse.str
}

// CHECK-LABEL: func.func @first_wins
// CHECK:         "profuse.constant"(%{{.*}}) {value = array<i64: 3>}
func.func @first_wins(%s: !profuse.ints) -> !profuse.ints {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64, profiled_view_size = array<i64: 1>, profiled_reduction_size = array<i64: 2>, profiled_int_list = array<i64: 3>} : (!profuse.ints) -> !profuse.ints
  return %0 : !profuse.ints
}

// An empty target of a sum stands for None (R3.5).
// CHECK-LABEL: func.func @none
// CHECK:         "profuse.constant"(%{{.*}}) {value} : (!profuse.ints) -> !profuse.ints
func.func @none(%s: !profuse.ints) -> !profuse.ints {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64, profiled_reduction_size = array<i64>} : (!profuse.ints) -> !profuse.ints
  return %0 : !profuse.ints
}

// Without a value the observer goes at once; reads in inner blocks are redirected as well.
// CHECK-LABEL: func.func @no_value
// CHECK-NEXT:    return %arg0, %arg1
// REASON-DAG:    a value of kind bool was None, differed from run to run, or is longer than a record holds: no group is made for one value of it
// REASON-DAG:    a value of kind int was never seen: no group is made for one value of it
func.func @no_value(%k: i1, %n: i64) -> (i1, i64) {
  %0 = "profuse.profile_value"(%k) {site = 0 : i64, kind = "bool", failed = true} : (i1) -> i1
  %1 = "profuse.profile_value"(%n) {site = 1 : i64, kind = "int"} : (i64) -> i64
  return %0, %1 : i1, i64
}

// CHECK-LABEL: func.func @nested
// CHECK:         %[[O:.*]] = "profuse.profile_value"
// CHECK-NEXT:    %[[C:.*]] = "profuse.constant"(%[[O]])
// CHECK:         scf.if
// CHECK-NEXT:      "profuse.late"(%{{.*}}, %[[C]])
func.func @nested(%x: !profuse.tensor, %b: i1, %k: i1) -> !profuse.tensor {
  %0 = "profuse.profile_value"(%k) {site = 0 : i64, kind = "bool", profiled_bool = false} : (i1) -> i1
  %1 = scf.if %b -> (!profuse.tensor) {
    %2 = "profuse.late"(%x, %0) {op = "sum", names = ["keepdims"]} : (!profuse.tensor, i1) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  return %1 : !profuse.tensor
}
