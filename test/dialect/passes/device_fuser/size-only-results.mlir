// RUN: profuse-opt %s -p size-only-results --verify-each | FileCheck %s
// RUN: profuse-opt %s -p size-only-results,size-only-results --stats 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: size-only-results:
// STATS-NOT: size-only-results:

// R3.33: one result instead of three. Of what only sizes are asked, or nothing, there is no result.
// R3.28: no chain of broadcasts for a result that is there.
// CHECK-LABEL: func.func @sizes_of_a_chain(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[G:.*]] = "profuse.cuda_group"(%[[X]], %[[Y]]) {callee = @chain} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:    %[[S:.*]] = "profuse.sizes"(%[[G]]) : (!profuse.tensor) -> !profuse.ints
// CHECK-NEXT:    return %[[G]], %[[S]]
func.func @sizes_of_a_chain(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.ints) {
  %g:3 = "profuse.cuda_group"(%x, %y) {callee = @chain} : (!profuse.tensor, !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %s = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  return %g#0, %s : !profuse.tensor, !profuse.ints
}
// CHECK:       func.func private @chain(%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %[[A:.*]] = "profuse.add"(%[[X]], %[[Y]])
// CHECK-NEXT:    return %[[A]]
func.func private @chain(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "profuse.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "profuse.exp"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Where no result is there, the sizes follow from the operands. All queries of sizes count; what
// they ask of the tensor is asked of the sizes. A result whose dtype is asked for stays.
// CHECK-LABEL: func.func @all_queries(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[G:.*]] = "profuse.cuda_group"(%[[X]], %[[Y]]) {callee = @all}
// CHECK-NEXT:    %[[A:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.sizes"(%[[Y]])
// CHECK-NEXT:    %[[C:.*]] = "profuse.broadcast_sizes"(%[[A]], %[[B]])
// CHECK-NEXT:    %[[D:.*]] = "profuse.dim_of"(%[[C]]) {axis = -1 : i64}
// CHECK-NEXT:    %[[R:.*]] = "profuse.rank_of"(%[[C]])
// CHECK-NEXT:    %[[N:.*]] = "profuse.size_of"(%[[C]])
// CHECK-NEXT:    %[[T:.*]] = "profuse.dtype_code"(%[[G]])
// CHECK-NEXT:    return %[[C]], %[[D]], %[[R]], %[[N]], %[[T]]
func.func @all_queries(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.ints, i64, i64, i64, i64) {
  %g = "profuse.cuda_group"(%x, %y) {callee = @all} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %s = "profuse.sizes"(%g) : (!profuse.tensor) -> !profuse.ints
  %d = "profuse.dim"(%g) {axis = -1 : i64} : (!profuse.tensor) -> i64
  %r = "profuse.rank"(%g) : (!profuse.tensor) -> i64
  %n = "profuse.size"(%g) : (!profuse.tensor) -> i64
  %t = "profuse.dtype_code"(%g) : (!profuse.tensor) -> i64
  return %s, %d, %r, %n, %t : !profuse.ints, i64, i64, i64, i64
}
func.func private @all(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Nested blocks; a result that a block yields is read.
// CHECK-LABEL: func.func @nested(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[C:.*]]: i1)
// CHECK:         scf.if
// CHECK-NEXT:      %[[G:.*]] = "profuse.cuda_group"(%[[X]]) {callee = @inner} : (!profuse.tensor) -> !profuse.tensor
// CHECK-NEXT:      %[[S:.*]] = "profuse.sizes"(%[[G]])
// CHECK-NEXT:      scf.yield %[[G]], %[[S]]
func.func @nested(%x: !profuse.tensor, %c: i1) -> (!profuse.tensor, !profuse.ints) {
  %r:2 = scf.if %c -> (!profuse.tensor, !profuse.ints) {
    %g:2 = "profuse.cuda_group"(%x) {callee = @inner} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
    %s = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
    scf.yield %g#0, %s : !profuse.tensor, !profuse.ints
  } else {
    %s = "profuse.sizes"(%x) : (!profuse.tensor) -> !profuse.ints
    scf.yield %x, %s : !profuse.tensor, !profuse.ints
  }
  return %r#0, %r#1 : !profuse.tensor, !profuse.ints
}
func.func private @inner(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.tanh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// A group of which nothing is left but sizes has no results.
// CHECK-LABEL: func.func @nothing_left(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK-NEXT:    "profuse.cuda_group"(%[[X]]) {callee = @left} : (!profuse.tensor) -> ()
// CHECK-NEXT:    %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    return %[[S]]
// CHECK:       func.func private @left(%{{.*}}: tensor<4xf32>) {
// CHECK-NEXT:    return
func.func @nothing_left(%x: !profuse.tensor) -> !profuse.ints {
  %g = "profuse.cuda_group"(%x) {callee = @left} : (!profuse.tensor) -> !profuse.tensor
  %s = "profuse.sizes"(%g) : (!profuse.tensor) -> !profuse.ints
  return %s : !profuse.ints
}
func.func private @left(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
