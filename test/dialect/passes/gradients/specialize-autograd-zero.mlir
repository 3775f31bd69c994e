// R1.43 without speculation: gradient arithmetic where definedness is known.
// RUN: profuse-opt %s --pass-pipeline=specialize-autograd-zero,fold,dce --verify-each | FileCheck %s

// CHECK-LABEL: func.func @sums(
// CHECK-SAME:    %[[X:.*]]: !profuse.tensor, %[[Y:.*]]: !profuse.tensor)
// CHECK-NEXT:    %[[T:.*]] = "profuse.tanh"(%[[X]])
// CHECK-NEXT:    %[[P:.*]] = "profuse.profile"(%[[T]])
// CHECK-NEXT:    %[[A:.*]] = "profuse.add"(%[[P]], %[[T]])
// CHECK-NEXT:    %[[B:.*]] = "profuse.autograd_add"(%[[X]], %[[Y]])
// CHECK-NEXT:    return %[[X]], %[[A]], %[[B]]
func.func @sums(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor) {
  %z = "profuse.autograd_zero"() : () -> !profuse.tensor
  %t = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %p = "profuse.profile"(%t) {site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.autograd_add"(%z, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.autograd_add"(%p, %t) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %2 = "profuse.autograd_add"(%x, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0, %1, %2 : !profuse.tensor, !profuse.tensor, !profuse.tensor
}

// A known test leaves one side of its branch.
// CHECK-LABEL: func.func @tests(
// CHECK-NOT:     scf.if
// CHECK:         %[[C:.*]] = "profuse.all_nonzero"(%{{.*}}, %{{.*}})
// CHECK:         return %{{.*}}, %[[C]], %{{.*}}
func.func @tests(%g: tensor<4xf32, {defined = false}>, %x: !profuse.tensor) -> (tensor<4xf32, {defined = false}>, i1, i1) {
  %any = "profuse.any_nonzero"(%g) : (tensor<4xf32, {defined = false}>) -> i1
  %r = scf.if %any -> (tensor<4xf32, {defined = false}>) {
    %n = "profuse.neg"(%g) : (tensor<4xf32, {defined = false}>) -> tensor<4xf32, {defined = false}>
    scf.yield %n : tensor<4xf32, {defined = false}>
  } else {
    scf.yield %g : tensor<4xf32, {defined = false}>
  }
  %t = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %all = "profuse.all_nonzero"(%x, %t) : (!profuse.tensor, !profuse.tensor) -> i1
  %none = "profuse.all_zero"(%x, %t) : (!profuse.tensor, !profuse.tensor) -> i1
  return %r, %all, %none : tensor<4xf32, {defined = false}>, i1, i1
}

// So does a branch of which both sides are, or the one that is taken.
// CHECK-LABEL: func.func @branches(
// CHECK-SAME:    %[[X:[^:]*]]: !profuse.tensor, %[[C:[^:]*]]: i1)
// CHECK:         return %[[X]], %[[X]]
func.func @branches(%x: !profuse.tensor, %c: i1) -> (!profuse.tensor, !profuse.tensor) {
  %z = "profuse.autograd_zero"() : () -> !profuse.tensor
  %r = scf.if %c -> (!profuse.tensor) {
    scf.yield %z : !profuse.tensor
  } else {
    %y = "profuse.autograd_zero"() : () -> !profuse.tensor
    scf.yield %y : !profuse.tensor
  }
  %0 = "profuse.autograd_add"(%x, %r) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %any = "profuse.any_nonzero"(%z) : (!profuse.tensor) -> i1
  %s = scf.if %any -> (!profuse.tensor) {
    scf.yield %x : !profuse.tensor
  } else {
    scf.yield %z : !profuse.tensor
  }
  %1 = "profuse.autograd_add"(%s, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0, %1 : !profuse.tensor, !profuse.tensor
}

// R2.9: an input of known type takes the place of a bare sum through an observer, which forgets it.
// CHECK-LABEL: func.func @typed(
// CHECK-SAME:    %[[X:.*]]: tensor<4xf32, {defined = true}>
// CHECK-NEXT:    %[[P:.*]] = "profuse.profile"(%[[X]]) {{.*}} -> !profuse.tensor
// CHECK-NEXT:    return %[[P]] : !profuse.tensor
func.func @typed(%x: tensor<4xf32, {defined = true}>) -> !profuse.tensor {
  %z = "profuse.autograd_zero"() : () -> !profuse.tensor
  %0 = "profuse.autograd_add"(%z, %x) : (!profuse.tensor, tensor<4xf32, {defined = true}>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
