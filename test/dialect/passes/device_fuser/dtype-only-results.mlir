// RUN: profuse-opt %s -p dtype-only-results --verify-each | FileCheck %s

// R3.47: the group gives no tensor to a query of its dtype, as a cast to a common dtype makes one.
// A9: the dtype itself is written, not its number.
// CHECK-LABEL: func.func @mixed_precision(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[C:.*]]:2 = "profuse.cuda_guard"(%[[X]])
// CHECK-NEXT:    %[[R:.*]]:2 = scf.if %[[C]]#1 -> (!profuse.tensor, i64) {
// CHECK-NEXT:      %[[G:.*]] = "profuse.cuda_group"(%[[C]]#0) {callee = @device_0} : (tensor<?xf16>) -> !profuse.tensor
// CHECK-NEXT:      %[[D:.*]] = "profuse.dtype_constant"() {dtype = f32} : () -> i64
// CHECK-NEXT:      scf.yield %[[G]], %[[D]] : !profuse.tensor, i64
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[F:.*]]:2 = "profuse.fallback_graph"(%[[X]]) {callee = @fallback_0}
// CHECK-NEXT:      %[[Q:.*]] = "profuse.dtype_code"(%[[F]]#1) : (!profuse.tensor) -> i64
// CHECK-NEXT:      scf.yield %[[F]]#0, %[[Q]] : !profuse.tensor, i64
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[S:.*]] = "profuse.add"(%[[R]]#1, %[[R]]#1)
// CHECK-NEXT:    return %[[R]]#0, %[[S]]
func.func @mixed_precision(%x: !profuse.tensor) -> (!profuse.tensor, i64) {
  %c:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf16>]} : (!profuse.tensor) -> (tensor<?xf16>, i1)
  %r:2 = scf.if %c#1 -> (!profuse.tensor, !profuse.tensor) {
    %g:2 = "profuse.cuda_group"(%c#0) {callee = @device_0} : (tensor<?xf16>) -> (!profuse.tensor, !profuse.tensor)
    scf.yield %g#0, %g#1 : !profuse.tensor, !profuse.tensor
  } else {
    %f:2 = "profuse.fallback_graph"(%x) {callee = @fallback_0} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor)
    scf.yield %f#0, %f#1 : !profuse.tensor, !profuse.tensor
  }
  %a = "profuse.dtype_code"(%r#1) : (!profuse.tensor) -> i64
  %b = "profuse.dtype_code"(%r#1) : (!profuse.tensor) -> i64
  %s = "profuse.add"(%a, %b) : (i64, i64) -> i64
  return %r#0, %s : !profuse.tensor, i64
}
// CHECK:       func.func private @device_0(%{{.*}}: tensor<4xf16>) -> tensor<4xf16> {
func.func private @device_0(%x: tensor<4xf16>) -> (tensor<4xf16>, tensor<4xf32>) {
  %0 = "profuse.tanh"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  %1 = "profuse.cast"(%x) {dtype = f32} : (tensor<4xf16>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf16>, tensor<4xf32>
}
func.func private @fallback_0(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.cast"(%x) {dtype = f32} : (!profuse.tensor) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}

// A result of which more than the dtype is asked stays, and one of which nothing is asked is none
// of this pass. Last to first, so that numbers of results before it hold.
// CHECK-LABEL: func.func @some(
// CHECK:         %[[R:.*]]:3 = scf.if %{{.*}} -> (i64, !profuse.tensor, i64) {
// CHECK:           %[[G:.*]] = "profuse.cuda_group"(%{{.*}}) {callee = @device_1} : (tensor<?xf32>) -> !profuse.tensor
// CHECK-DAG:       %[[A:.*]] = "profuse.dtype_constant"() {dtype = f32}
// CHECK-DAG:       %[[B:.*]] = "profuse.dtype_constant"() {dtype = i1}
// CHECK:           scf.yield %[[A]], %[[G]], %[[B]] : i64, !profuse.tensor, i64
// CHECK:         "profuse.size"(%[[R]]#1)
// CHECK:         "profuse.dtype_code"(%[[R]]#1)
// CHECK:         return %[[R]]#0, %{{.*}}, %{{.*}}, %[[R]]#2
func.func @some(%x: !profuse.tensor) -> (i64, i64, i64, i64) {
  %c:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r:3 = scf.if %c#1 -> (!profuse.tensor, !profuse.tensor, !profuse.tensor) {
    %g:3 = "profuse.cuda_group"(%c#0) {callee = @device_1} : (tensor<?xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
    scf.yield %g#0, %g#1, %g#2 : !profuse.tensor, !profuse.tensor, !profuse.tensor
  } else {
    %f:3 = "profuse.fallback_graph"(%x) {callee = @fallback_1} : (!profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
    scf.yield %f#0, %f#1, %f#2 : !profuse.tensor, !profuse.tensor, !profuse.tensor
  }
  %a = "profuse.dtype_code"(%r#0) : (!profuse.tensor) -> i64
  %n = "profuse.size"(%r#1) : (!profuse.tensor) -> i64
  %b = "profuse.dtype_code"(%r#1) : (!profuse.tensor) -> i64
  %d = "profuse.dtype_code"(%r#2) : (!profuse.tensor) -> i64
  return %a, %n, %b, %d : i64, i64, i64, i64
}
// CHECK: func.func private @device_1(%{{.*}}: tensor<4xf32>) -> tensor<4xf32> {
// CHECK:   return %{{.*}} : tensor<4xf32>
func.func private @device_1(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi1>) {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "profuse.isnan"(%x) : (tensor<4xf32>) -> tensor<4xi1>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xi1>
}
func.func private @fallback_1(%x: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.isnan"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0, %1, %2 : !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// A value that the group does not make is left alone.
// CHECK-LABEL: func.func @not_of_the_group(
// CHECK:         scf.if %{{.*}} -> (!profuse.tensor, !profuse.tensor)
func.func @not_of_the_group(%x: !profuse.tensor) -> (!profuse.tensor, i64) {
  %c:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  %r:2 = scf.if %c#1 -> (!profuse.tensor, !profuse.tensor) {
    %g = "profuse.cuda_group"(%c#0) {callee = @device_2} : (tensor<?xf32>) -> !profuse.tensor
    scf.yield %g, %x : !profuse.tensor, !profuse.tensor
  } else {
    %f = "profuse.fallback_graph"(%x) {callee = @fallback_2} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %f, %x : !profuse.tensor, !profuse.tensor
  }
  %d = "profuse.dtype_code"(%r#1) : (!profuse.tensor) -> i64
  return %r#0, %d : !profuse.tensor, i64
}
func.func private @device_2(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.tanh"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @fallback_2(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
