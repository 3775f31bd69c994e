// RUN: %{python} %S/../lower.py loops %s | FileCheck %s

// Both sides are computed, and chosen between by the last bit of the number. It is the first kernel
// of its process: the operations that say what is rare belong to a dialect that is loaded by then.
// CHECK-LABEL: // halves
// CHECK-NOT:   error
// CHECK:       ^bb0(%[[N:.*]]: i64, %{{.*}}: i64):
// CHECK:         %[[ODD:.*]] = arith.trunci %[[N]] : i64 to i1
// CHECK:         %[[HALF:.*]] = arith.shrsi %[[N]]
// CHECK:         llvm.intr.expect
// CHECK:         arith.select %[[ODD]], %{{.*}}, %[[HALF]]
func.func @halves(%start: i64) -> tensor<i64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %two = "profuse.constant"() {value = 2 : i64} : () -> i64
  %three = "profuse.constant"() {value = 3 : i64} : () -> i64
  %r:2 = scf.while (%n = %start, %k = %zero) : (i64, i64) -> (i64, i64) {
    %more = "profuse.ne"(%n, %one) : (i64, i64) -> i1
    scf.condition(%more) %n, %k : i64, i64
  } do {
  ^bb0(%n: i64, %k: i64):
    %rest = "profuse.remainder"(%n, %two) : (i64, i64) -> i64
    %even = "profuse.eq"(%rest, %zero) : (i64, i64) -> i1
    %next = scf.if %even -> (i64) {
      %half = "profuse.floor_div"(%n, %two) : (i64, i64) -> i64
      scf.yield %half : i64
    } else {
      %much = "profuse.mul"(%three, %n) : (i64, i64) -> i64
      %more = "profuse.add"(%much, %one) : (i64, i64) -> i64
      scf.yield %more : i64
    }
    %steps = "profuse.add"(%k, %one) : (i64, i64) -> i64
    scf.yield %next, %steps : i64, i64
  }
  %found = "profuse.to_tensor"(%r#1) : (i64) -> tensor<i64>
  return %found : tensor<i64>
}
