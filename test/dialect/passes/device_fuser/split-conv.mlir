// RUN: profuse-opt %s -p split-conv --verify-each | FileCheck %s
// RUN: profuse-opt %s -p split-conv,views-to-copies --verify-each | FileCheck %s --check-prefix=COPIES

// R3.10: the bias as (C,1) and (C,1,1), the convolution without it, an optional sum; only what reads
// the result later reads the sum. The copies of step 6 are those of its views.
// CHECK-LABEL: func.func @bias(
// CHECK-SAME:    %[[X:.*]]: tensor<2x3x8x8xf32>, %[[W:.*]]: tensor<4x3x3x3xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK-NEXT:    %[[E:.*]] = "profuse.expand_dims"(%[[B]]) {axes = array<i64: -1>} : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK-NEXT:    %[[F:.*]] = "profuse.expand_dims"(%[[E]]) {axes = array<i64: -1>} : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
// CHECK-NEXT:    %[[C:.*]] = "profuse.conv2d"(%[[X]], %[[W]]) {stride = array<i64: 2, 2>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x3x3xf32>
// CHECK-NEXT:    %[[Y:.*]] = "profuse.add_optional"(%[[C]], %[[F]]) {given = 1 : i64}
// CHECK-NEXT:    %[[T:.*]] = "profuse.relu"(%[[Y]])
// CHECK-NEXT:    return %[[Y]], %[[T]]
// COPIES:        "profuse.unsqueeze_copy"(%{{.*}}) {axes = array<i64: -1>, implicit = true}
// COPIES-NEXT:   "profuse.unsqueeze_copy"(%{{.*}}) {axes = array<i64: -1>, implicit = true}
func.func @bias(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>) {
  %y = "profuse.conv2d"(%x, %w, %b) {given = 1 : i64, stride = array<i64: 2, 2>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<2x4x3x3xf32>
  %t = "profuse.relu"(%y) : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  return %y, %t : tensor<2x4x3x3xf32>, tensor<2x4x3x3xf32>
}

// Without a bias it is untouched; nested blocks are searched.
// CHECK-LABEL: func.func @nested(
// CHECK:         scf.if
// CHECK:           "profuse.add_optional"
// CHECK:         } else {
// CHECK-NEXT:      "profuse.conv2d"
// CHECK-NEXT:      scf.yield
func.func @nested(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>, %c: i1) -> tensor<2x4x6x6xf32> {
  %r = scf.if %c -> tensor<2x4x6x6xf32> {
    %y = "profuse.conv2d"(%x, %w, %b) {given = 1 : i64} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<2x4x6x6xf32>
    scf.yield %y : tensor<2x4x6x6xf32>
  } else {
    %y = "profuse.conv2d"(%x, %w) : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
    scf.yield %y : tensor<2x4x6x6xf32>
  }
  return %r : tensor<2x4x6x6xf32>
}

// The size of the bias alone must be known.
// CHECK-LABEL: func.func @other_sizes(
// CHECK:         "profuse.add_optional"
func.func @other_sizes(%x: tensor<?x3x?x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>) -> !profuse.tensor {
  %y = "profuse.conv2d"(%x, %w, %b) {given = 1 : i64} : (tensor<?x3x?x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> !profuse.tensor
  return %y : !profuse.tensor
}
