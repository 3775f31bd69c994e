// R1.47: sums of at least four single-use products are one op, which decides by the shapes it meets.
// RUN: profuse-opt %s --pass-pipeline=batch-matmul --verify-each | FileCheck %s
// RUN: profuse-opt %s --pass-pipeline='batch-matmul{min-products=2}' | FileCheck %s --check-prefix=TWO
// RUN: profuse-opt %s --pass-pipeline='batch-matmul{exact=true}' | FileCheck %s --check-prefix=EXACT

// One product of joined matrices adds up in another order than several.
// EXACT-NOT: mm_tree

// CHECK-LABEL: func.func @tree(
// CHECK-SAME:    %[[A:[^:]*]]: !profuse.tensor, %[[B:[^:]*]]: !profuse.tensor, %[[C:[^:]*]]: !profuse.tensor
// CHECK-NEXT:    %[[R:.*]] = "profuse.mm_tree"(%[[A]], %[[C]], %[[B]], %[[A]], %[[B]], %[[B]], %[[A]], %[[C]])
// CHECK-SAME:      {adds = array<i64: 0, 1, 0, 2>}
// CHECK-NEXT:    return %[[R]]
func.func @tree(%a: !profuse.tensor, %b: !profuse.tensor, %c: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.matmul"(%a, %b) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.matmul"(%c, %b) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %2 = "profuse.matmul"(%b, %a) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %3 = "profuse.matmul"(%a, %c) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %4 = "profuse.add"(%0, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %5 = "profuse.add"(%2, %3) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %6 = "profuse.add"(%4, %5) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %6 : !profuse.tensor
}

// A product may be transposed as a whole; the sum may be in a nested block.
// CHECK-LABEL: func.func @transposed(
// CHECK:         scf.for
// CHECK-NEXT:      "profuse.mm_tree"
// CHECK-SAME:        {adds = array<i64: 0, 1, 1, 1>, transposed = array<i1: false, true, false, false>}
// CHECK-NEXT:      scf.yield
func.func @transposed(%a: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %r = scf.for %i = %n to %n step %n iter_args(%x = %a) -> (!profuse.tensor) : i64 {
    %0 = "profuse.matmul"(%a, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %1 = "profuse.matmul"(%x, %a) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %t = "profuse.transpose"(%1) : (!profuse.tensor) -> !profuse.tensor
    %2 = "profuse.matmul"(%x, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %3 = "profuse.matmul"(%a, %a) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %4 = "profuse.add"(%0, %t) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %5 = "profuse.add"(%4, %2) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    %6 = "profuse.add"(%5, %3) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %6 : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// Too few products; a product with a second use.
// CHECK-LABEL: func.func @few(
// CHECK-NOT:     mm_tree
// CHECK:         return
// TWO-LABEL:   func.func @few(
// TWO:           "profuse.mm_tree"(%arg0, %arg0, %arg0, %arg0) {adds = array<i64: 0, 1>}
func.func @few(%a: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.matmul"(%a, %a) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.matmul"(%a, %a) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %2 = "profuse.add"(%0, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %2 : !profuse.tensor
}

// CHECK-LABEL: func.func @used_twice(
// TWO-LABEL:   func.func @used_twice(
// TWO-NOT:       mm_tree
// TWO:           return
func.func @used_twice(%a: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.matmul"(%a, %a) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.matmul"(%a, %a) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %2 = "profuse.add"(%0, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %2, %0 : !profuse.tensor, !profuse.tensor
}

// Products of several dtypes promote step by step.
// CHECK-LABEL: func.func @dtypes(
// TWO-LABEL:   func.func @dtypes(
// TWO-NOT:       mm_tree
// TWO:           return
func.func @dtypes(%a: tensor<4x4xf32>, %b: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %0 = "profuse.matmul"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "profuse.matmul"(%b, %b) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  %2 = "profuse.add"(%0, %1) : (tensor<4x4xf32>, tensor<4x4xf64>) -> tensor<4x4xf64>
  return %2 : tensor<4x4xf64>
}
