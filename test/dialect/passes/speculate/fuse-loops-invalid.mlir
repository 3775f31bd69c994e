// RUN: not profuse-opt %s -p 'fuse-loops{dynamic=2}' 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not profuse-opt %s -p 'fuse-loops{loops=2}' 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: profuse-opt %s -p fuse-loops --stats 2>&1 | FileCheck %s

// VALUE: dynamic
// NAME: fuse-loops{{.*}}loops

// A value has one type in all rounds, else the loop stays.
// CHECK:       1 a loop runs round by round: scf.for: a value is tensor<8xf64> here and tensor<4xf64> there
// CHECK:       func.func @other_type
// CHECK:         scf.for
// CHECK-NOT:   profuse.fusion_group
func.func @other_type(%x: tensor<8xf64>, %n: i64) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %y = "profuse.copy"(%x) : (tensor<8xf64>) -> !profuse.tensor
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %y) -> (!profuse.tensor) : i64 {
    %e = "profuse.slice"(%a) {starts = array<i64: 0>, stops = array<i64: 4>} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %e : !profuse.tensor
  }
  return %r : !profuse.tensor
}
