// RUN: profuse-opt %s -p shape-peephole --verify-each | FileCheck %s

// R3.34: bs(bs(a,b),a) -> bs(a,b).
// CHECK-LABEL: func.func @folded(
// CHECK-SAME:    %[[A:.*]]: !profuse.ints, %[[B:.*]]: !profuse.ints)
// CHECK-NEXT:    %[[R:.*]] = "profuse.broadcast_sizes"(%[[A]], %[[B]])
// CHECK-NEXT:    return %[[R]]
func.func @folded(%a: !profuse.ints, %b: !profuse.ints) -> !profuse.ints {
  %0 = "profuse.broadcast_sizes"(%a, %b) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  %1 = "profuse.broadcast_sizes"(%0, %a) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  return %1 : !profuse.ints
}

// One operand is forwarded, also once equal ones count once.
// CHECK-LABEL: func.func @forwarded(
// CHECK-SAME:    %[[A:.*]]: !profuse.ints)
// CHECK-NEXT:    return %[[A]], %[[A]]
func.func @forwarded(%a: !profuse.ints) -> (!profuse.ints, !profuse.ints) {
  %0 = "profuse.broadcast_sizes"(%a) : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.broadcast_sizes"(%0, %a, %0) : (!profuse.ints, !profuse.ints, !profuse.ints) -> !profuse.ints
  return %0, %1 : !profuse.ints, !profuse.ints
}

// Equal operands are dropped in the order of values; without any, the order stays.
// CHECK-LABEL: func.func @order(
// CHECK-SAME:    %[[A:.*]]: !profuse.ints, %[[B:.*]]: !profuse.ints)
// CHECK-NEXT:    %[[R:.*]] = "profuse.broadcast_sizes"(%[[A]], %[[B]])
// CHECK-NEXT:    %[[S:.*]] = "profuse.broadcast_sizes"(%[[B]], %[[A]])
// CHECK-NEXT:    return %[[R]], %[[S]]
func.func @order(%a: !profuse.ints, %b: !profuse.ints) -> (!profuse.ints, !profuse.ints) {
  %0 = "profuse.broadcast_sizes"(%b, %a, %b) : (!profuse.ints, !profuse.ints, !profuse.ints) -> !profuse.ints
  %1 = "profuse.broadcast_sizes"(%b, %a) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  return %0, %1 : !profuse.ints, !profuse.ints
}

// One that something else reads as well stays; one in a nested block is folded, too.
// CHECK-LABEL: func.func @nested(
// CHECK-SAME:    %[[A:.*]]: !profuse.ints, %[[B:.*]]: !profuse.ints, %[[X:.*]]: !profuse.ints, %[[C:.*]]: i1)
// CHECK-NEXT:    %[[R:.*]] = "profuse.broadcast_sizes"(%[[A]], %[[B]])
// CHECK-NEXT:    %[[I:.*]] = scf.if
// CHECK-NEXT:      %[[S:.*]] = "profuse.broadcast_sizes"(%[[R]], %[[X]])
// CHECK-NEXT:      scf.yield %[[S]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[T:.*]] = "profuse.broadcast_sizes"(%[[X]], %[[A]])
// CHECK-NEXT:      scf.yield %[[T]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]], %[[I]]
func.func @nested(%a: !profuse.ints, %b: !profuse.ints, %x: !profuse.ints, %c: i1) -> (!profuse.ints, !profuse.ints) {
  %0 = "profuse.broadcast_sizes"(%a, %b) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  %1 = "profuse.broadcast_sizes"(%x, %a) : (!profuse.ints, !profuse.ints) -> !profuse.ints
  %r = scf.if %c -> !profuse.ints {
    %2 = "profuse.broadcast_sizes"(%0, %x) : (!profuse.ints, !profuse.ints) -> !profuse.ints
    scf.yield %2 : !profuse.ints
  } else {
    %2 = "profuse.broadcast_sizes"(%1) : (!profuse.ints) -> !profuse.ints
    scf.yield %2 : !profuse.ints
  }
  return %0, %r : !profuse.ints, !profuse.ints
}
