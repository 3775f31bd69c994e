// RUN: profuse-opt %s | FileCheck %s
// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// An op whose attributes are values of the run (R3.5).
// CHECK-LABEL: func.func @sum
// CHECK:         "profuse.late"(%{{.*}}, %{{.*}}, %{{.*}}) {names = ["axes", "keepdims"], op = "sum"} : (!profuse.tensor, !profuse.ints, i1) -> !profuse.tensor
func.func @sum(%x: !profuse.tensor, %axes: !profuse.ints, %keep: i1) -> !profuse.tensor {
  %0 = "profuse.late"(%x, %axes, %keep) {op = "sum", names = ["axes", "keepdims"]} : (!profuse.tensor, !profuse.ints, i1) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// One axis is a list of axes, a dtype its number.
// CHECK-LABEL: func.func @others
// CHECK:         "profuse.late"(%{{.*}}, %{{.*}}) {names = ["axes"], op = "squeeze"} : (!profuse.tensor, i64) -> !profuse.tensor
// CHECK:         "profuse.late"(%{{.*}}, %{{.*}}) {names = ["dtype"], op = "cast"} : (!profuse.tensor, i64) -> !profuse.tensor
func.func @others(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %0 = "profuse.late"(%x, %n) {op = "squeeze", names = ["axes"]} : (!profuse.tensor, i64) -> !profuse.tensor
  %1 = "profuse.late"(%0, %n) {op = "cast", names = ["dtype"]} : (!profuse.tensor, i64) -> !profuse.tensor
  return %1 : !profuse.tensor
}

// A conditional constant depends on what it stands for (R3.6).
// CHECK-LABEL: func.func @conditional
// CHECK:         "profuse.constant"(%{{.*}}) {value = true} : (i1) -> i1
func.func @conditional(%keep: i1) -> i1 {
  %0 = "profuse.constant"(%keep) {value = true} : (i1) -> i1
  return %0 : i1
}
