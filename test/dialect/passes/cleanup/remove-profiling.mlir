// RUN: profuse-opt %s -p remove-profiling --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS < %t

// R1.22: observers of all blocks go, operands are forwarded; the counter of the top block goes.
// STATS: 3 observers-removed

// CHECK-LABEL: func.func @f(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[C:.*]]: i1)
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[C]]
// CHECK-NEXT:      %[[T:.*]] = "profuse.tanh"(%[[X]])
// CHECK-NEXT:      scf.yield %[[T]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]
func.func @f(%x: !profuse.tensor, %c: i1) -> !profuse.tensor {
  %c2 = "profuse.profile_value"(%c) {site = 0 : i64} : (i1) -> i1
  %r = scf.if %c2 -> !profuse.tensor {
    %p = "profuse.profile"(%x) {site = 1 : i64} : (!profuse.tensor) -> !profuse.tensor
    %q = "profuse.profile"(%p) {site = 2 : i64} : (!profuse.tensor) -> !profuse.tensor
    %t = "profuse.tanh"(%q) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %t : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  "profuse.profile_counter"() : () -> ()
  return %r : !profuse.tensor
}

// A counter elsewhere than in the top block is not ours to remove.
// CHECK-LABEL: func.func @inner
// CHECK:         "profuse.profile_counter"
func.func @inner(%c: i1) {
  scf.if %c {
    "profuse.profile_counter"() : () -> ()
  }
  return
}
