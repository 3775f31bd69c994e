// R1.26: a list grown in place is made longer instead, so that `lower-lists` can take it away.
// RUN: profuse-opt %s --pass-pipeline=remove-list-mutation --verify-each | FileCheck %s
// RUN: profuse-opt %s --pass-pipeline=remove-list-mutation,lower-lists | FileCheck %s --check-prefix=LOWERED

// CHECK-LABEL: func.func @grown(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[L:.*]] = "profuse.list_construct"(%[[X]], %[[Y]], %[[X]])
// CHECK-NEXT:    "profuse.list_unpack"(%[[L]])
// LOWERED-LABEL: func.func @grown(
// LOWERED-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// LOWERED-NEXT:    return %[[Y]]
func.func @grown(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %l = "profuse.list_construct"(%x) : (!profuse.tensor) -> !profuse.list
  "profuse.list_append"(%l, %y) : (!profuse.list, !profuse.tensor) -> ()
  "profuse.list_append"(%l, %x) : (!profuse.list, !profuse.tensor) -> ()
  %u:3 = "profuse.list_unpack"(%l) : (!profuse.list) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %u#1 : !profuse.tensor
}

// Unpacked before: those items are the old list's.
// CHECK-LABEL: func.func @before(
// CHECK:         %[[L:.*]] = "profuse.list_construct"(%[[X:.*]]) :
// CHECK-NEXT:    "profuse.list_unpack"(%[[L]])
// CHECK-NEXT:    %[[M:.*]] = "profuse.list_construct"(%[[X]], %[[X]])
// CHECK-NEXT:    return %{{.*}}, %[[M]]
func.func @before(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.list) {
  %l = "profuse.list_construct"(%x) : (!profuse.tensor) -> !profuse.list
  %u = "profuse.list_unpack"(%l) : (!profuse.list) -> !profuse.tensor
  "profuse.list_append"(%l, %x) : (!profuse.list, !profuse.tensor) -> ()
  return %u, %l : !profuse.tensor, !profuse.list
}

// Grown in another block, or handed on before it grows: the others see it grow.
// CHECK-LABEL: func.func @branch(
// CHECK:         scf.if
// CHECK-NEXT:      "profuse.list_append"
func.func @branch(%x: !profuse.tensor, %c: i1) -> !profuse.list {
  %l = "profuse.list_construct"(%x) : (!profuse.tensor) -> !profuse.list
  scf.if %c {
    "profuse.list_append"(%l, %x) : (!profuse.list, !profuse.tensor) -> ()
  }
  return %l : !profuse.list
}

// CHECK-LABEL: func.func @alias(
// CHECK:         "profuse.list_append"
func.func @alias(%x: !profuse.tensor, %c: i1, %m: !profuse.list) -> !profuse.list {
  %l = "profuse.list_construct"(%x) : (!profuse.tensor) -> !profuse.list
  %a = "profuse.if_then_else"(%c, %l, %m) : (i1, !profuse.list, !profuse.list) -> !profuse.list
  "profuse.list_append"(%l, %x) : (!profuse.list, !profuse.tensor) -> ()
  return %a : !profuse.list
}
