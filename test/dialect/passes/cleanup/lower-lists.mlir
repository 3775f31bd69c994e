// R1.24: a list that only carries tensors from one place to another goes.
// RUN: profuse-opt %s --pass-pipeline=lower-lists --verify-each | FileCheck %s

// CHECK-LABEL: func.func @carried(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[S:.*]] = "profuse.sub"(%[[X]], %[[Y]])
// CHECK-NEXT:    return %[[S]], %[[X]]
func.func @carried(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %l = "profuse.list_construct"(%x, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.list
  %u:2 = "profuse.list_unpack"(%l) : (!profuse.list) -> (!profuse.tensor, !profuse.tensor)
  %s = "profuse.sub"(%u#0, %u#1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %v:2 = "profuse.list_unpack"(%l) : (!profuse.list) -> (!profuse.tensor, !profuse.tensor)
  return %s, %v#0 : !profuse.tensor, !profuse.tensor
}

// One that somebody else has, or that is unpacked into another number, stays.
// CHECK-LABEL: func.func @grown(
// CHECK-NEXT:    "profuse.list_construct"
// CHECK-NEXT:    "profuse.list_append"
// CHECK-NEXT:    "profuse.list_unpack"
func.func @grown(%x: !profuse.tensor) -> !profuse.tensor {
  %l = "profuse.list_construct"(%x) : (!profuse.tensor) -> !profuse.list
  "profuse.list_append"(%l, %x) : (!profuse.list, !profuse.tensor) -> ()
  %u:2 = "profuse.list_unpack"(%l) : (!profuse.list) -> (!profuse.tensor, !profuse.tensor)
  return %u#1 : !profuse.tensor
}

// CHECK-LABEL: func.func @count(
// CHECK-NEXT:    "profuse.list_construct"
// CHECK-NEXT:    "profuse.list_unpack"
func.func @count(%x: !profuse.tensor) -> !profuse.tensor {
  %l = "profuse.list_construct"(%x) : (!profuse.tensor) -> !profuse.list
  %u:2 = "profuse.list_unpack"(%l) : (!profuse.list) -> (!profuse.tensor, !profuse.tensor)
  return %u#1 : !profuse.tensor
}
