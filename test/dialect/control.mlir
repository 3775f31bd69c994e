// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @if
func.func @if(%c: i1, %x: !profuse.tensor) -> !profuse.tensor {
  // CHECK-NEXT: %0 = scf.if %arg0 -> (!profuse.tensor) {
  %0 = scf.if %c -> !profuse.tensor {
    // CHECK-NEXT: "profuse.exp"
    %1 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %1 : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  return %0 : !profuse.tensor
}

// CHECK-LABEL: func.func @loops
func.func @loops(%n: i64, %x: tensor<4xf32>) -> (tensor<4xf32>, i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK: scf.for %{{.*}} = %{{.*}} to %arg0 step %{{.*}} iter_args(%{{.*}} = %arg1) -> (tensor<4xf32>) : i64
  %0 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<4xf32>) : i64 {
    %1 = "profuse.add"(%a, %i) : (tensor<4xf32>, i64) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  // CHECK: scf.while
  %2 = scf.while (%i = %zero) : (i64) -> i64 {
    %more = "profuse.lt"(%i, %n) : (i64, i64) -> i1
    // CHECK: scf.condition
    scf.condition(%more) %i : i64
  } do {
  ^bb0(%i: i64):
    %next = "profuse.add"(%i, %one) : (i64, i64) -> i64
    scf.yield %next : i64
  }
  return %0, %2 : tensor<4xf32>, i64
}
