// RUN: profuse-opt %s | FileCheck %s
// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// Values of the types !profuse.ints, !profuse.bools and !profuse.str, and ops on sizes (R3.28 to R3.43).
// CHECK-LABEL: func.func @constants
// CHECK:         "profuse.constant"() {value = array<i64: 0, -1>} : () -> !profuse.ints
// CHECK:         "profuse.constant"() {value = array<i64>} : () -> !profuse.ints
// CHECK:         "profuse.constant"() {value} : () -> !profuse.ints
// CHECK:         "profuse.constant"() {value = array<i1: true, false>} : () -> !profuse.bools
// CHECK:         "profuse.constant"() {value = "tanh \22"} : () -> !profuse.str
func.func @constants() -> (!profuse.ints, !profuse.ints, !profuse.ints, !profuse.bools, !profuse.str) {
  %0 = "profuse.constant"() {value = array<i64: 0, -1>} : () -> !profuse.ints
  %1 = "profuse.constant"() {value = array<i64>} : () -> !profuse.ints
  %2 = "profuse.constant"() {value = unit} : () -> !profuse.ints
  %3 = "profuse.constant"() {value = array<i1: true, false>} : () -> !profuse.bools
  %4 = "profuse.constant"() {value = "tanh \22"} : () -> !profuse.str
  return %0, %1, %2, %3, %4 : !profuse.ints, !profuse.ints, !profuse.ints, !profuse.bools, !profuse.str
}

// CHECK-LABEL: func.func @formulas
// CHECK:         "profuse.sizes"(%{{.*}}) : (!profuse.tensor) -> !profuse.ints
// CHECK:         "profuse.broadcast_sizes"(%{{.*}}, %{{.*}}) : (!profuse.ints, !profuse.ints) -> !profuse.ints
// CHECK:         "profuse.chunk_sizes"(%{{.*}}) {axis = 1 : i64, chunks = 3 : i64} : (!profuse.ints) -> (!profuse.ints, !profuse.ints)
// CHECK:         "profuse.reduction_sizes"(%{{.*}}) {axes = array<i64: 0>, keepdims = true} : (!profuse.ints) -> !profuse.ints
// CHECK:         "profuse.unsqueeze_sizes"(%{{.*}}) {axes = array<i64: -1>} : (!profuse.ints) -> !profuse.ints
// CHECK:         "profuse.squeeze_sizes"(%{{.*}}) : (!profuse.ints) -> !profuse.ints
func.func @formulas(%x: !profuse.tensor, %s: !profuse.ints) -> !profuse.ints {
  %0 = "profuse.sizes"(%x) : (!profuse.tensor) -> !profuse.ints
  %1 = "profuse.broadcast_sizes"(%0, %s) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  %2:2 = "profuse.chunk_sizes"(%1) {axis = 1 : i64, chunks = 3 : i64} : (!profuse.ints) -> (!profuse.ints, !profuse.ints)
  %3 = "profuse.reduction_sizes"(%2#0) {axes = array<i64: 0>, keepdims = true} : (!profuse.ints) -> !profuse.ints
  %4 = "profuse.unsqueeze_sizes"(%3) {axes = array<i64: -1>} : (!profuse.ints) -> !profuse.ints
  %5 = "profuse.squeeze_sizes"(%4) : (!profuse.ints) -> !profuse.ints
  return %5 : !profuse.ints
}

// One check per kind of value (R3.38).
// CHECK-LABEL: func.func @checks
// CHECK:         "profuse.bool_xor"(%{{.*}}, %{{.*}}) : (i1, i1) -> i1
// CHECK:         "profuse.value_eq"(%{{.*}}) {value = array<i64: 0, 1>} : (!profuse.ints) -> i1
// CHECK:         "profuse.value_eq"(%{{.*}}) {value = "tanh"} : (!profuse.str) -> i1
// CHECK:         "profuse.value_eq"(%{{.*}}) {value = -1 : i64} : (i64) -> i1
// CHECK:         "profuse.view_guard"(%{{.*}}, %{{.*}}) {constraint = "s0, s1 -> s0, (s1 // 3), 3"} : (!profuse.ints, !profuse.ints) -> i1
// CHECK:         "profuse.all_true"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (i1, i1, i1, i1, i1) -> i1
func.func @checks(%k: i1, %i: i64, %s: !profuse.ints, %m: !profuse.str, %x: !profuse.tensor) -> i1 {
  %0 = "profuse.bool_xor"(%k, %k) : (i1, i1) -> i1
  %1 = "profuse.value_eq"(%s) {value = array<i64: 0, 1>} : (!profuse.ints) -> i1
  %2 = "profuse.value_eq"(%m) {value = "tanh"} : (!profuse.str) -> i1
  %3 = "profuse.value_eq"(%i) {value = -1 : i64} : (i64) -> i1
  %4 = "profuse.sizes"(%x) : (!profuse.tensor) -> !profuse.ints
  %5 = "profuse.view_guard"(%4, %s) {constraint = "s0, s1 -> s0, (s1 // 3), 3"} : (!profuse.ints, !profuse.ints) -> i1
  %6 = "profuse.all_true"(%0, %1, %2, %3, %5) : (i1, i1, i1, i1, i1) -> i1
  return %6 : i1
}
