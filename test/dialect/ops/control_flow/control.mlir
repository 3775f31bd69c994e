// RUN: profuse-opt %s | FileCheck %s
// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// The generic form, in which programs print, and scf's own are the same ops.
// CHECK-LABEL: func.func @generic(
// CHECK:         %[[I:.*]] = scf.if %{{.*}} -> (!profuse.tensor) {
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    } else {
// CHECK-NEXT:      scf.yield
// CHECK:         %[[F:.*]] = scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[A:.*]] = %[[I]]) -> (!profuse.tensor) : i64
// CHECK-NEXT:      scf.yield %[[A]]
// CHECK:         scf.while (%[[B:.*]] = %[[F]])
// CHECK-NEXT:      scf.condition(%{{.*}}) %[[B]]
func.func @generic(%x: !profuse.tensor, %c: i1, %n: i64) -> !profuse.tensor {
  %0 = "scf.if"(%c) ({
    "scf.yield"(%x) : (!profuse.tensor) -> ()
  }, {
    "scf.yield"(%x) : (!profuse.tensor) -> ()
  }) : (i1) -> !profuse.tensor
  %1 = "scf.for"(%n, %n, %n, %0) ({
  ^bb0(%i: i64, %a: !profuse.tensor):
    "scf.yield"(%a) : (!profuse.tensor) -> ()
  }) : (i64, i64, i64, !profuse.tensor) -> !profuse.tensor
  %2 = "scf.while"(%1) ({
  ^bb0(%b: !profuse.tensor):
    "scf.condition"(%c, %b) : (i1, !profuse.tensor) -> ()
  }, {
  ^bb0(%d: !profuse.tensor):
    "scf.yield"(%d) : (!profuse.tensor) -> ()
  }) : (!profuse.tensor) -> !profuse.tensor
  return %2 : !profuse.tensor
}

// CHECK-LABEL: func.func @choice(
// CHECK-NEXT:    "profuse.if_then_else"(%arg0, %arg1, %arg2) : (i1, tensor<4xf32>, tensor<8xf32>) -> tensor<?xf32>
// CHECK-NEXT:    "profuse.if_then_else"(%arg0, %arg3, %arg3) : (i1, i64, i64) -> i64
func.func @choice(%c: i1, %x: tensor<4xf32>, %y: tensor<8xf32>, %n: i64) -> i64 {
  %0 = "profuse.if_then_else"(%c, %x, %y) : (i1, tensor<4xf32>, tensor<8xf32>) -> tensor<?xf32>
  %1 = "profuse.if_then_else"(%c, %n, %n) : (i1, i64, i64) -> i64
  return %1 : i64
}
