// RUN: profuse-opt %s -p drop-unprofiled-groups --verify-each | FileCheck %s
// RUN: profuse-opt %s -p drop-unprofiled-groups --stats 2>&1 | FileCheck %s --check-prefix=STATS

// STATS: 5 groups-dropped

// R3.46: without a dtype there is nothing to compare. The fallback runs always.
// CHECK-LABEL: func.func @unprofiled(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[F:.*]]:2 = "profuse.fallback_graph"(%[[X]], %[[Y]]) {callee = @fallback_0}
// CHECK-NEXT:    return %[[F]]#1, %[[F]]#0 : !profuse.tensor, !profuse.tensor
func.func @unprofiled(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %c:3 = "profuse.cuda_guard"(%x, %y) {types = [tensor<4xf32, {device = "cuda:0"}>, !profuse.tensor]} : (!profuse.tensor, !profuse.tensor) -> (tensor<?xf32, {device = "cuda:0"}>, !profuse.tensor, i1)
  %r:2 = scf.if %c#2 -> (!profuse.tensor, !profuse.tensor) {
    %g:2 = "profuse.cuda_group"(%c#0, %c#1) {callee = @device_0} : (tensor<?xf32, {device = "cuda:0"}>, !profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
    scf.yield %g#0, %g#1 : !profuse.tensor, !profuse.tensor
  } else {
    %f:2 = "profuse.fallback_graph"(%x, %y) {callee = @fallback_0} : (!profuse.tensor, !profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
    scf.yield %f#0, %f#1 : !profuse.tensor, !profuse.tensor
  }
  return %r#1, %r#0 : !profuse.tensor, !profuse.tensor
}
// The function of the group goes with it, that of the fallback stays.
// CHECK-NOT:   @device_0
// CHECK:       func.func private @fallback_0
func.func private @device_0(%x: tensor<4xf32, {device = "cuda:0"}>, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32, {device = "cuda:0"}>) -> !profuse.tensor
  %1 = "profuse.exp"(%y) : (!profuse.tensor) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}
func.func private @fallback_0(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%y) : (!profuse.tensor) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}

// A rank or a device is missed as well, also in nested blocks.
// CHECK-LABEL: func.func @rank_and_device(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[C:.*]]: i1)
// CHECK-NEXT:    %[[R:.*]] = scf.if %[[C]]
// CHECK-NEXT:      %[[A:.*]] = "profuse.fallback_graph"(%[[X]]) {callee = @fallback_1}
// CHECK-NEXT:      scf.yield %[[A]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[B:.*]] = "profuse.fallback_graph"(%[[X]]) {callee = @fallback_1}
// CHECK-NEXT:      scf.yield %[[B]]
// CHECK-NEXT:    }
// CHECK-NEXT:    return %[[R]]
func.func @rank_and_device(%x: !profuse.tensor, %c: i1) -> !profuse.tensor {
  %o = scf.if %c -> !profuse.tensor {
    %k:2 = "profuse.cuda_guard"(%x) {types = [tensor<*xf32>]} : (!profuse.tensor) -> (tensor<*xf32>, i1)
    %r = scf.if %k#1 -> !profuse.tensor {
      %g = "profuse.cuda_group"(%k#0) {callee = @device_1} : (tensor<*xf32>) -> !profuse.tensor
      scf.yield %g : !profuse.tensor
    } else {
      %f = "profuse.fallback_graph"(%x) {callee = @fallback_1} : (!profuse.tensor) -> !profuse.tensor
      scf.yield %f : !profuse.tensor
    }
    scf.yield %r : !profuse.tensor
  } else {
    %k:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
    %r = scf.if %k#1 -> !profuse.tensor {
      %g = "profuse.cuda_group"(%k#0) {callee = @device_1} : (tensor<?xf32>) -> !profuse.tensor
      scf.yield %g : !profuse.tensor
    } else {
      %f = "profuse.fallback_graph"(%x) {callee = @fallback_1} : (!profuse.tensor) -> !profuse.tensor
      scf.yield %f : !profuse.tensor
    }
    scf.yield %r : !profuse.tensor
  }
  return %o : !profuse.tensor
}
// CHECK-NOT:   @device_1
func.func private @device_1(%x: tensor<*xf32>) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (tensor<*xf32>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @fallback_1(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// A guard that knows all three stays, strides and sizes or not.
// CHECK-LABEL: func.func @profiled(
// CHECK:         "profuse.cuda_guard"
// CHECK:         "profuse.cuda_group"
func.func @profiled(%x: !profuse.tensor) -> !profuse.tensor {
  %k:2 = "profuse.cuda_guard"(%x) {types = [tensor<?xf32, {device = "cpu"}>]} : (!profuse.tensor) -> (tensor<?xf32, {device = "cpu"}>, i1)
  %r = scf.if %k#1 -> !profuse.tensor {
    %g = "profuse.cuda_group"(%k#0) {callee = @device_2} : (tensor<?xf32, {device = "cpu"}>) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x) {callee = @fallback_1} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  return %r : !profuse.tensor
}
func.func private @device_2(%x: tensor<?xf32>) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (tensor<?xf32>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
// CHECK: func.func private @device_2

// A function that another group calls as well stays.
// CHECK-LABEL: func.func @shared(
// CHECK-NOT:     "profuse.cuda_guard"
// CHECK:         return
func.func @shared(%x: !profuse.tensor) -> !profuse.tensor {
  %k:2 = "profuse.cuda_guard"(%x) {types = [tensor<?xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r = scf.if %k#1 -> !profuse.tensor {
    %g = "profuse.cuda_group"(%k#0) {callee = @device_2} : (tensor<?xf32>) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x) {callee = @fallback_1} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// The checks of values that stood beside the guard go with it, and what only they have read.
// CHECK-LABEL: func.func @checks(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[K:.*]]: i1, %[[S:.*]]: !profuse.ints)
// CHECK-NEXT:    %[[F:.*]] = "profuse.fallback_graph"(%[[X]], %[[K]], %[[S]]) {callee = @fallback_2}
// CHECK-NEXT:    return %[[F]]
func.func @checks(%x: !profuse.tensor, %k: i1, %s: !profuse.ints) -> !profuse.tensor {
  %t = "profuse.constant"() {value = true} : () -> i1
  %0 = "profuse.bool_xor"(%k, %t) : (i1, i1) -> i1
  %1 = "profuse.bool_xor"(%0, %t) : (i1, i1) -> i1
  %n = "profuse.sizes"(%x) : (!profuse.tensor) -> !profuse.ints
  %2 = "profuse.view_guard"(%n, %s) {constraint = "s0 -> s0"} : (!profuse.ints, !profuse.ints) -> i1
  %c:2 = "profuse.cuda_guard"(%x) {types = [tensor<?xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %a = "profuse.all_true"(%1, %2, %c#1) : (i1, i1, i1) -> i1
  %r = scf.if %a -> !profuse.tensor {
    %g = "profuse.cuda_group"(%c#0) {callee = @device_2} : (tensor<?xf32>) -> !profuse.tensor
    scf.yield %g : !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x, %k, %s) {callee = @fallback_2} : (!profuse.tensor, i1, !profuse.ints) -> !profuse.tensor
    scf.yield %f : !profuse.tensor
  }
  return %r : !profuse.tensor
}
func.func private @fallback_2(%x: !profuse.tensor, %k: i1, %s: !profuse.ints) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
