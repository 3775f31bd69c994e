// RUN: profuse-opt %s -p size-only-results --verify-each | FileCheck %s

// R3.29, row by row: how sizes follow where no result is there.

// chunk: regular and last size.
// CHECK-LABEL: func.func @chunk(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK:         %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    %[[C:.*]]:2 = "profuse.chunk_sizes"(%[[S]]) {axis = 1 : i64, chunks = 3 : i64}
// CHECK-NEXT:    return %[[C]]#0, %[[C]]#0, %[[C]]#1
func.func @chunk(%x: !profuse.tensor) -> (!profuse.ints, !profuse.ints, !profuse.ints) {
  %g:3 = "profuse.cuda_group"(%x) {callee = @d_chunk} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %a = "profuse.sizes"(%g#0) : (!profuse.tensor) -> !profuse.ints
  %b = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  %c = "profuse.sizes"(%g#2) : (!profuse.tensor) -> !profuse.ints
  return %a, %b, %c : !profuse.ints, !profuse.ints, !profuse.ints
}
func.func private @d_chunk(%x: tensor<2x7xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0:3 = "profuse.chunk"(%x) {axis = 1 : i64, chunks = 3 : i64} : (tensor<2x7xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %0#0, %0#1, %0#2 : !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// sum, mean, var, std: constant axes and keepdims.
// CHECK-LABEL: func.func @reductions(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK:         %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-DAG:     %[[A:.*]] = "profuse.reduction_sizes"(%[[S]]) {axes = array<i64: 0>, keepdims = true}
// CHECK-DAG:     %[[B:.*]] = "profuse.reduction_sizes"(%[[S]]) {axes = array<i64: -1>}
// CHECK-DAG:     %[[C:.*]] = "profuse.reduction_sizes"(%[[S]]) {keepdims = true}
// CHECK-DAG:     %[[D:.*]] = "profuse.reduction_sizes"(%[[S]]) : (!profuse.ints)
// CHECK:         return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @reductions(%x: !profuse.tensor) -> (!profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints) {
  %g:4 = "profuse.cuda_group"(%x) {callee = @d_reductions} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor)
  %a = "profuse.sizes"(%g#0) : (!profuse.tensor) -> !profuse.ints
  %b = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  %c = "profuse.sizes"(%g#2) : (!profuse.tensor) -> !profuse.ints
  %d = "profuse.sizes"(%g#3) : (!profuse.tensor) -> !profuse.ints
  return %a, %b, %c, %d : !profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints
}
func.func private @d_reductions(%x: tensor<2x7xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0 = "profuse.sum"(%x) {axes = array<i64: 0>, keepdims = true} : (tensor<2x7xf32>) -> !profuse.tensor
  %1 = "profuse.mean"(%x) {axes = array<i64: -1>} : (tensor<2x7xf32>) -> !profuse.tensor
  %2 = "profuse.var"(%x) {keepdims = true} : (tensor<2x7xf32>) -> !profuse.tensor
  %3 = "profuse.std"(%x) : (tensor<2x7xf32>) -> !profuse.tensor
  return %0, %1, %2, %3 : !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// layer norm, batch norm, dropout: operand 0's; of dropout both results.
// CHECK-LABEL: func.func @norms(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[N:.*]]: i64)
// CHECK:         %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    return %[[S]], %[[S]], %[[S]], %[[S]]
func.func @norms(%x: !profuse.tensor, %n: i64) -> (!profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints) {
  %g:4 = "profuse.cuda_group"(%x, %n) {callee = @d_norms} : (!profuse.tensor, i64) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor)
  %a = "profuse.sizes"(%g#0) : (!profuse.tensor) -> !profuse.ints
  %b = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  %c = "profuse.sizes"(%g#2) : (!profuse.tensor) -> !profuse.ints
  %d = "profuse.sizes"(%g#3) : (!profuse.tensor) -> !profuse.ints
  return %a, %b, %c, %d : !profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints
}
func.func private @d_norms(%x: tensor<2x7xf32>, %n: i64) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0:3 = "profuse.native_layer_norm"(%x) {shape = array<i64: 7>} : (tensor<2x7xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %1 = "profuse.batch_norm"(%x) {training = true} : (tensor<2x7xf32>) -> !profuse.tensor
  %2:2 = "profuse.native_dropout"(%x, %n, %n) {p = 0.5 : f64} : (tensor<2x7xf32>, i64, i64) -> (!profuse.tensor, !profuse.tensor)
  return %0#0, %1, %2#0, %2#1 : !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// Statistics have none: they stay results.
// CHECK-LABEL: func.func @statistics(
// CHECK:         %[[G:.*]] = "profuse.cuda_group"
// CHECK-NEXT:    %[[S:.*]] = "profuse.sizes"(%[[G]])
// CHECK-NEXT:    return %[[S]]
func.func @statistics(%x: !profuse.tensor) -> !profuse.ints {
  %g = "profuse.cuda_group"(%x) {callee = @d_statistics} : (!profuse.tensor) -> !profuse.tensor
  %a = "profuse.sizes"(%g) : (!profuse.tensor) -> !profuse.ints
  return %a : !profuse.ints
}
func.func private @d_statistics(%x: tensor<2x7xf32>) -> !profuse.tensor {
  %0:3 = "profuse.native_layer_norm"(%x) {shape = array<i64: 7>} : (tensor<2x7xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %0#1 : !profuse.tensor
}

// layer-norm backward: the gradient's, the weight's, the bias's.
// CHECK-LABEL: func.func @layer_norm_backward(
// CHECK-SAME:    %[[D:.*]]: !profuse.tensor, %[[X:.*]]: !profuse.tensor, %[[M:.*]]: !profuse.tensor, %[[W:.*]]: !profuse.tensor, %[[B:.*]]: !profuse.tensor)
// CHECK-DAG:     %[[R:.*]] = "profuse.sizes"(%[[D]])
// CHECK-DAG:     %[[S:.*]] = "profuse.sizes"(%[[W]])
// CHECK-DAG:     %[[T:.*]] = "profuse.sizes"(%[[B]])
// CHECK:         return %[[R]], %[[S]], %[[T]]
func.func @layer_norm_backward(%d: !profuse.tensor, %x: !profuse.tensor, %m: !profuse.tensor, %w: !profuse.tensor, %b: !profuse.tensor) -> (!profuse.ints, !profuse.ints, !profuse.ints) {
  %g:3 = "profuse.cuda_group"(%d, %x, %m, %w, %b) {callee = @d_layer_norm_backward} : (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %1 = "profuse.sizes"(%g#0) : (!profuse.tensor) -> !profuse.ints
  %2 = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  %3 = "profuse.sizes"(%g#2) : (!profuse.tensor) -> !profuse.ints
  return %1, %2, %3 : !profuse.ints, !profuse.ints, !profuse.ints
}
func.func private @d_layer_norm_backward(%d: tensor<2x7xf32>, %x: tensor<2x7xf32>, %m: tensor<2x1xf32>, %w: tensor<7xf32>, %b: tensor<7xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0:3 = "profuse.native_layer_norm_backward"(%d, %x, %m, %m, %w, %b) {given = 3 : i64, shape = array<i64: 7>} : (tensor<2x7xf32>, tensor<2x7xf32>, tensor<2x1xf32>, tensor<2x1xf32>, tensor<7xf32>, tensor<7xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %0#0, %0#1, %0#2 : !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// batch-norm backward: operands 0, 2, 2; the indexed one: 1, 3, 3.
// CHECK-LABEL: func.func @batch_norm_backward(
// CHECK-SAME:    %[[D:.*]]: !profuse.tensor, %[[X:.*]]: !profuse.tensor, %[[M:.*]]: !profuse.tensor, %[[W:.*]]: !profuse.tensor, %[[U:.*]]: !profuse.tensor)
// CHECK-DAG:     %[[R:.*]] = "profuse.sizes"(%[[D]])
// CHECK-DAG:     %[[S:.*]] = "profuse.sizes"(%[[W]])
// CHECK-DAG:     %[[T:.*]] = "profuse.sizes"(%[[X]])
// CHECK:         return %[[R]], %[[S]], %[[S]], %[[T]], %[[S]], %[[S]]
func.func @batch_norm_backward(%d: !profuse.tensor, %x: !profuse.tensor, %m: !profuse.tensor, %w: !profuse.tensor, %u: !profuse.tensor) -> (!profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints) {
  %g:6 = "profuse.cuda_group"(%d, %x, %m, %w, %u) {callee = @d_batch_norm_backward} : (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor)
  %1 = "profuse.sizes"(%g#0) : (!profuse.tensor) -> !profuse.ints
  %2 = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  %3 = "profuse.sizes"(%g#2) : (!profuse.tensor) -> !profuse.ints
  %4 = "profuse.sizes"(%g#3) : (!profuse.tensor) -> !profuse.ints
  %5 = "profuse.sizes"(%g#4) : (!profuse.tensor) -> !profuse.ints
  %6 = "profuse.sizes"(%g#5) : (!profuse.tensor) -> !profuse.ints
  return %1, %2, %3, %4, %5, %6 : !profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints
}
func.func private @d_batch_norm_backward(%d: tensor<2x7xf32>, %x: tensor<2x7xf32>, %m: tensor<7xf32>, %w: tensor<7xf32>, %u: tensor<0xui8>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %k = "profuse.constant"() {value = 0 : i64} : () -> i64
  %0:3 = "profuse.native_batch_norm_backward"(%d, %x, %w, %m, %m) {given = 25 : i64, training = true} : (tensor<2x7xf32>, tensor<2x7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %1:3 = "profuse.batch_norm_index_backward"(%k, %x, %d, %w, %m, %m, %u) {given = 25 : i64, training = true} : (i64, tensor<2x7xf32>, tensor<2x7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>, tensor<0xui8>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return %0#0, %0#1, %0#2, %1#0, %1#1, %1#2 : !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// unsqueeze and squeeze, as copies too: inferred. Where the op raises an error for other sizes, so do these.
// CHECK-LABEL: func.func @views(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK:         %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    %[[A:.*]] = "profuse.unsqueeze_sizes"(%[[S]]) {axes = array<i64: -1>}
// CHECK-NEXT:    %[[B:.*]] = "profuse.strict_squeeze_sizes"(%[[A]]) {axes = array<i64: 2>}
// CHECK-NEXT:    %[[C:.*]] = "profuse.squeeze_sizes"(%[[A]]) : (!profuse.ints)
// CHECK-NEXT:    %[[D:.*]] = "profuse.reshape_sizes"(%[[A]]) {shape = array<i64: 14>}
// CHECK-NEXT:    return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @views(%x: !profuse.tensor) -> (!profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints) {
  %g:4 = "profuse.cuda_group"(%x) {callee = @d_views} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor, !profuse.tensor)
  %1 = "profuse.sizes"(%g#0) : (!profuse.tensor) -> !profuse.ints
  %2 = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  %3 = "profuse.sizes"(%g#2) : (!profuse.tensor) -> !profuse.ints
  %4 = "profuse.sizes"(%g#3) : (!profuse.tensor) -> !profuse.ints
  return %1, %2, %3, %4 : !profuse.ints, !profuse.ints, !profuse.ints, !profuse.ints
}
func.func private @d_views(%x: tensor<2x7xf32>) -> (tensor<2x7x1xf32>, !profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0 = "profuse.unsqueeze_copy"(%x) {axes = array<i64: -1>} : (tensor<2x7xf32>) -> tensor<2x7x1xf32>
  %1 = "profuse.squeeze_copy"(%0) {axes = array<i64: 2>} : (tensor<2x7x1xf32>) -> !profuse.tensor
  %2 = "profuse.squeeze"(%0) : (tensor<2x7x1xf32>) -> !profuse.tensor
  %3 = "profuse.reshape_copy"(%0) {shape = array<i64: 14>} : (tensor<2x7x1xf32>) -> !profuse.tensor
  return %0, %1, %2, %3 : tensor<2x7x1xf32>, !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// Anything else: its single tensor operand's, or broadcast_sizes of all; numbers have none, and
// equal sizes count once.
// CHECK-LABEL: func.func @elementwise(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor, %[[N:.*]]: f64)
// CHECK:         %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    %[[T:.*]] = "profuse.sizes"(%[[Y]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.broadcast_sizes"(%[[T]], %[[S]])
// CHECK-NEXT:    return %[[S]], %[[B]], %[[B]]
func.func @elementwise(%x: !profuse.tensor, %y: !profuse.tensor, %n: f64) -> (!profuse.ints, !profuse.ints, !profuse.ints) {
  %g:3 = "profuse.cuda_group"(%x, %y, %n) {callee = @d_elementwise} : (!profuse.tensor, !profuse.tensor, f64) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %1 = "profuse.sizes"(%g#0) : (!profuse.tensor) -> !profuse.ints
  %2 = "profuse.sizes"(%g#1) : (!profuse.tensor) -> !profuse.ints
  %3 = "profuse.sizes"(%g#2) : (!profuse.tensor) -> !profuse.ints
  return %1, %2, %3 : !profuse.ints, !profuse.ints, !profuse.ints
}
func.func private @d_elementwise(%x: tensor<2x7xf32>, %y: tensor<7xf32>, %n: f64) -> (tensor<2x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>) {
  %0 = "profuse.mul"(%x, %n) : (tensor<2x7xf32>, f64) -> tensor<2x7xf32>
  %1 = "profuse.add"(%y, %0) : (tensor<7xf32>, tensor<2x7xf32>) -> tensor<2x7xf32>
  %2 = "profuse.mul"(%1, %1) : (tensor<2x7xf32>, tensor<2x7xf32>) -> tensor<2x7xf32>
  return %0, %1, %2 : tensor<2x7xf32>, tensor<2x7xf32>, tensor<2x7xf32>
}

// Axes that are known at run time: outside of the group they are read there, whatever was observed,
// so that the sizes are right where the guard fails (R3.30). A number that stays a number is one.
// CHECK-LABEL: func.func @late(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[A:.*]]: !profuse.ints)
// CHECK-NEXT:    %[[O:.*]] = "profuse.profile_value"(%[[A]])
// CHECK-NEXT:    "profuse.cuda_group"(%[[X]], %[[O]]) {callee = @d_late} : (!profuse.tensor, !profuse.ints) -> ()
// CHECK-NEXT:    %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    %[[K:.*]] = "profuse.constant"() {value = true} : () -> i1
// CHECK-NEXT:    %[[R:.*]] = "profuse.late"(%[[S]], %[[O]], %[[K]]) {names = ["axes", "keepdims"], op = "reduction_sizes"} : (!profuse.ints, !profuse.ints, i1) -> !profuse.ints
// CHECK-NEXT:    return %[[R]]
func.func @late(%x: !profuse.tensor, %a: !profuse.ints) -> !profuse.ints {
  %o = "profuse.profile_value"(%a) {site = 0 : i64, profiled_int_list = array<i64: 0>} : (!profuse.ints) -> !profuse.ints
  %g = "profuse.cuda_group"(%x, %o) {callee = @d_late} : (!profuse.tensor, !profuse.ints) -> !profuse.tensor
  %s = "profuse.sizes"(%g) : (!profuse.tensor) -> !profuse.ints
  return %s : !profuse.ints
}
func.func private @d_late(%x: tensor<2x7xf32>, %o: !profuse.ints) -> !profuse.tensor {
  %c = "profuse.constant"(%o) {value = array<i64: 0>} : (!profuse.ints) -> !profuse.ints
  %k = "profuse.constant"() {value = true} : () -> i1
  %0 = "profuse.late"(%x, %c, %k) {op = "sum", names = ["axes", "keepdims"]} : (tensor<2x7xf32>, !profuse.ints, i1) -> !profuse.tensor
  return %0 : !profuse.tensor
}
