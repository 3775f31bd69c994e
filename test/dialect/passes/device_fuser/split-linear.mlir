// RUN: profuse-opt %s -p split-linear --verify-each | FileCheck %s

// R3.9: transpose, product, optional sum; the sum has the type of the product, without strides.
// CHECK-LABEL: func.func @matrix(
// CHECK-SAME:    %[[X:.*]]: tensor<5x3xf32, {device = "cuda:0"}>, %[[W:.*]]: tensor<4x3xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK-NEXT:    %[[T:.*]] = "profuse.transpose"(%[[W]]) {perm = array<i64: 1, 0>} : (tensor<4x3xf32>) -> tensor<3x4xf32>
// CHECK-NEXT:    %[[P:.*]] = "profuse.matmul"(%[[X]], %[[T]]) {{.*}} -> tensor<5x4xf32>
// CHECK-NEXT:    %[[Y:.*]] = "profuse.add_optional"(%[[P]], %[[B]]) {given = 1 : i64} : (tensor<5x4xf32>, tensor<4xf32>) -> tensor<5x4xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @matrix(%x: tensor<5x3xf32, {device = "cuda:0"}>, %w: tensor<4x3xf32>, %b: tensor<4xf32>) -> tensor<5x4xf32> {
  %y = "profuse.linear"(%x, %w, %b) {given = 1 : i64} : (tensor<5x3xf32, {device = "cuda:0"}>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}

// What was seen of the strides is forgotten, unless the type is that of other values, too.
// CHECK-LABEL: func.func @strides(
// CHECK:         "profuse.add_optional"(%{{.*}}, %{{.*}}) {given = 1 : i64} : (tensor<5x4xf32>, tensor<4xf32>) -> tensor<5x4xf32>
// CHECK-NEXT:    "profuse.relu"
// CHECK:         "profuse.add_optional"(%{{.*}}, %{{.*}}) {given = 1 : i64} : (tensor<5x4xf32>, tensor<4xf32>) -> tensor<5x4xf32, {strides = ["4", "1"]}>
func.func @strides(%x: tensor<5x3xf32>, %w: tensor<4x3xf32>, %b: tensor<4xf32>) -> (tensor<5x4xf32>, tensor<5x4xf32, {strides = ["4", "1"]}>) {
  %y = "profuse.linear"(%x, %w, %b) {given = 1 : i64} : (tensor<5x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<5x4xf32, {strides = ["4", "1"]}>
  %r = "profuse.relu"(%y) : (tensor<5x4xf32, {strides = ["4", "1"]}>) -> tensor<5x4xf32>
  %z = "profuse.linear"(%x, %w, %b) {given = 1 : i64} : (tensor<5x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<5x4xf32, {strides = ["4", "1"]}>
  return %r, %z : tensor<5x4xf32>, tensor<5x4xf32, {strides = ["4", "1"]}>
}

// A weight of one axis: the last size is dropped.
// CHECK-LABEL: func.func @vector(
// CHECK-NEXT:    %[[P:.*]] = "profuse.matmul"(%{{.*}}, %{{.*}}) : (tensor<2x5x3xf32>, tensor<3xf32>) -> tensor<2x5xf32>
// CHECK-NEXT:    "profuse.add_optional"(%[[P]], %{{.*}}) {given = 1 : i64} : (tensor<2x5xf32>, tensor<f32>) -> tensor<2x5xf32>
func.func @vector(%x: tensor<2x5x3xf32>, %w: tensor<3xf32>, %b: tensor<f32>) -> tensor<2x5xf32> {
  %y = "profuse.linear"(%x, %w, %b) {given = 1 : i64} : (tensor<2x5x3xf32>, tensor<3xf32>, tensor<f32>) -> tensor<2x5xf32>
  return %y : tensor<2x5xf32>
}

// Without a bias it is untouched; nested blocks are searched.
// CHECK-LABEL: func.func @nested(
// CHECK:         scf.if
// CHECK:           "profuse.add_optional"
// CHECK:         } else {
// CHECK:           "profuse.linear"(%{{.*}}, %{{.*}}) : (tensor<5x3xf32>, tensor<4x3xf32>)
func.func @nested(%x: tensor<5x3xf32>, %w: tensor<4x3xf32>, %b: tensor<4xf32>, %c: i1) -> tensor<5x4xf32> {
  %r = scf.if %c -> tensor<5x4xf32> {
    %y = "profuse.linear"(%x, %w, %b) {given = 1 : i64} : (tensor<5x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<5x4xf32>
    scf.yield %y : tensor<5x4xf32>
  } else {
    %y = "profuse.linear"(%x, %w) : (tensor<5x3xf32>, tensor<4x3xf32>) -> tensor<5x4xf32>
    scf.yield %y : tensor<5x4xf32>
  }
  return %r : tensor<5x4xf32>
}
