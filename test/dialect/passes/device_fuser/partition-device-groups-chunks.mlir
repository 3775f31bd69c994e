// RUN: profuse-opt %s -p partition-device-groups --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t
// RUN: profuse-opt %s -p 'partition-device-groups{chunks=false}' | FileCheck %s --check-prefix=OFF
// RUN: profuse-opt %s -p 'partition-device-groups{leading-chunks=true chunks=false}' | FileCheck %s --check-prefix=INSIDE

!t = tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>
!row = tensor<8xf32, {device = "cuda:0", strides = "contiguous"}>
!half = tensor<4x4xf32, {device = "cuda:0", strides = ["8", "1"]}>

// STATS: partition-device-groups: 3 chunks-lowered, 2 chunks-moved, 2 groups, 6 ops-fused

// R3.23, R3.24, R3.26: each half of the product is computed of halves of the operands, in the group that
// adds them; the operands are broadcast first, whatever their sizes are at run time.
// R3.25: the row's chunks have stride 0 along the axis that it has not got.
// CHECK-LABEL: func.func @product(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: {{.*}}, %[[Y:[a-z0-9]+]]:
// CHECK-NEXT:    %[[A:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.sizes"(%[[Y]])
// CHECK-NEXT:    %[[S:.*]] = "profuse.broadcast_sizes"(%[[A]], %[[B]])
// CHECK-NEXT:    %[[XW:.*]] = "profuse.late"(%[[X]], %[[S]]) {names = ["shape"], op = "broadcast_to"}
// CHECK-NEXT:    %[[YW:.*]] = "profuse.late"(%[[Y]], %[[S]]) {{.*}} -> tensor<4x8xf32, {device = "cuda:0", strides = ["0", "1"]}>
// CHECK-NEXT:    %[[XC:.*]]:2 = "profuse.chunk"(%[[XW]]) {axis = 1 : i64, chunks = 2 : i64} {{.*}}strides = ["8", "1"]
// CHECK-NEXT:    %[[YC:.*]]:2 = "profuse.chunk"(%[[YW]]) {axis = 1 : i64, chunks = 2 : i64} {{.*}} -> (tensor<4x4xf32, {device = "cuda:0", strides = ["0", "1"]}>,
// CHECK-NEXT:    %[[G:.*]] = "profuse.cuda_group"(%[[XC]]#0, %[[YC]]#0, %[[XC]]#1, %[[YC]]#1) {callee = @[[PRODUCT:[a-z_0-9]+]]}
// CHECK-NEXT:    return %[[G]]
// OFF-LABEL: func.func @product(
// OFF-NEXT:    "profuse.mul"
// OFF-NEXT:    "profuse.chunk"
// OFF-NEXT:    "profuse.add"
// INSIDE-LABEL: func.func @product(
// INSIDE-NEXT: "profuse.cuda_group"
// INSIDE-NEXT: return
func.func @product(%x: !t, %y: !row) -> !half {
  %p = "profuse.mul"(%x, %y) : (!t, !row) -> !t
  %a, %b = "profuse.chunk"(%p) {axis = 1 : i64, chunks = 2 : i64} : (!t) -> (!half, !half)
  %c = "profuse.add"(%a, %b) : (!half, !half) -> !half
  return %c : !half
}

// R3.24: the sizes of what is no more are those of its only operand.
// CHECK-LABEL: func.func @sizes(
// CHECK-SAME:    %[[X:[a-z0-9]+]]:
// CHECK-NEXT:    %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    %[[C:.*]]:2 = "profuse.chunk"(%[[X]])
// CHECK-NEXT:    %[[G:.*]] = "profuse.cuda_group"(%[[C]]#0, %[[C]]#1)
// CHECK-NEXT:    return %[[G]], %[[S]]
func.func @sizes(%x: !t) -> (!half, !profuse.ints) {
  %p = "profuse.tanh"(%x) : (!t) -> !t
  %s = "profuse.sizes"(%p) : (!t) -> !profuse.ints
  %a, %b = "profuse.chunk"(%p) {axis = 1 : i64, chunks = 2 : i64} : (!t) -> (!half, !half)
  %c = "profuse.add"(%a, %b) : (!half, !half) -> !half
  return %c, %s : !half, !profuse.ints
}

// R3.23: the caller reads a chunk.
// CHECK-LABEL: func.func @read_elsewhere(
// CHECK-NEXT:    "profuse.mul"
// CHECK-NEXT:    "profuse.chunk"
// CHECK-NEXT:    "profuse.add"
func.func @read_elsewhere(%x: !t, %y: !row) -> (!half, !half) {
  %p = "profuse.mul"(%x, %y) : (!t, !row) -> !t
  %a, %b = "profuse.chunk"(%p) {axis = 1 : i64, chunks = 2 : i64} : (!t) -> (!half, !half)
  %c = "profuse.add"(%a, %b) : (!half, !half) -> !half
  return %c, %b : !half, !half
}

// R3.26: one that was there before, where no group is.
// CHECK-LABEL: func.func @leftover(
// CHECK-SAME:    %[[X:[a-z0-9]+]]:
// CHECK-NEXT:    %[[C:.*]]:2 = "profuse.chunk"(%[[X]])
// CHECK-NEXT:    return %[[C]]#0, %[[C]]#1
func.func @leftover(%x: !t) -> (!half, !half) {
  %a, %b = "profuse.broadcasting_chunk"(%x) {axis = 1 : i64, chunks = 2 : i64} : (!t) -> (!half, !half)
  return %a, %b : !half, !half
}

// CHECK:       func.func private @[[PRODUCT]](%[[A:.*]]: tensor{{.*}}, %[[B:.*]]: tensor{{.*}}, %[[C:.*]]: tensor{{.*}}, %[[D:.*]]: tensor
// CHECK-NEXT:    %[[P:.*]] = "profuse.mul"(%[[A]], %[[B]])
// CHECK-NEXT:    %[[Q:.*]] = "profuse.mul"(%[[C]], %[[D]])
// CHECK-NEXT:    "profuse.add"(%[[P]], %[[Q]])
