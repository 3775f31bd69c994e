// RUN: profuse-opt %s | profuse-opt | FileCheck %s

// CHECK-LABEL: func.func @layer_norms
func.func @layer_norms(%x: tensor<2x3x4xf16>, %w: tensor<4xf32>, %u: !profuse.tensor) {
  // CHECK-NEXT: "profuse.native_layer_norm"(%arg0, %arg1, %arg1) {given = 3 : i64, shape = array<i64: 4>} : (tensor<2x3x4xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf16>, tensor<2x3x1xf32>, tensor<2x3x1xf32>)
  %0:3 = "profuse.native_layer_norm"(%x, %w, %w) {shape = array<i64: 4>, given = 3 : i64} : (tensor<2x3x4xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf16>, tensor<2x3x1xf32>, tensor<2x3x1xf32>)
  // CHECK-NEXT: "profuse.native_layer_norm"(%arg0) {eps = {{.*}}, shape = array<i64: 3, 4>} : (tensor<2x3x4xf16>) -> (tensor<2x3x4xf16>, tensor<2x1x1xf32>, tensor<2x1x1xf32>)
  %1:3 = "profuse.native_layer_norm"(%x) {shape = array<i64: 3, 4>, eps = 0.5 : f64} : (tensor<2x3x4xf16>) -> (tensor<2x3x4xf16>, tensor<2x1x1xf32>, tensor<2x1x1xf32>)
  // CHECK-NEXT: "profuse.native_layer_norm"(%arg2, %arg1) {given = 1 : i64, shape = array<i64: 4>} : (!profuse.tensor, tensor<4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  %2:3 = "profuse.native_layer_norm"(%u, %w) {shape = array<i64: 4>, given = 1 : i64} : (!profuse.tensor, tensor<4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // A masked-off result is undefined.
  // CHECK-NEXT: "profuse.native_layer_norm_backward"(%0#0, %arg0, %0#1, %0#2, %arg1, %arg1) {given = 3 : i64, mask = array<i1: true, false, true>, shape = array<i64: 4>} : (tensor<2x3x4xf16>, tensor<2x3x4xf16>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf16>, !profuse.tensor, tensor<4xf32>)
  %3:3 = "profuse.native_layer_norm_backward"(%0#0, %x, %0#1, %0#2, %w, %w) {shape = array<i64: 4>, given = 3 : i64, mask = array<i1: true, false, true>} : (tensor<2x3x4xf16>, tensor<2x3x4xf16>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf16>, !profuse.tensor, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @group_norm
func.func @group_norm(%x: tensor<2x6x4xf32>, %w: tensor<6xf32>) {
  // CHECK-NEXT: "profuse.native_group_norm"(%arg0, %arg1) {given = 2 : i64, groups = 3 : i64} : (tensor<2x6x4xf32>, tensor<6xf32>) -> (tensor<2x6x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %0:3 = "profuse.native_group_norm"(%x, %w) {groups = 3 : i64, given = 2 : i64} : (tensor<2x6x4xf32>, tensor<6xf32>) -> (tensor<2x6x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// CHECK-LABEL: func.func @batch_norms
func.func @batch_norms(%x: tensor<2x3x4xf16>, %s: tensor<3xf32>, %i: i64, %n: i64) {
  // CHECK-NEXT: "profuse.batch_norm"(%arg0) {training = true} : (tensor<2x3x4xf16>) -> tensor<2x3x4xf16>
  %0 = "profuse.batch_norm"(%x) {training = true} : (tensor<2x3x4xf16>) -> tensor<2x3x4xf16>
  // CHECK-NEXT: "profuse.native_batch_norm"(%arg0, %arg1, %arg1, %arg1) {given = 13 : i64, training = true} : {{.*}} -> (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %1:5 = "profuse.native_batch_norm"(%x, %s, %s, %s) {training = true, given = 13 : i64} : (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK-NEXT: "profuse.native_batch_norm"(%arg0, %arg1, %arg1) {given = 12 : i64, training = false} : {{.*}} -> (tensor<2x3x4xf16>, tensor<0xf32>, tensor<0xf32>, tensor<3xf32>, tensor<3xf32>)
  %2:5 = "profuse.native_batch_norm"(%x, %s, %s) {training = false, given = 12 : i64} : (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf16>, tensor<0xf32>, tensor<0xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK-NEXT: "profuse.batch_norm_index"(%arg0, %arg1, %arg1) {given = 12 : i64, training = true} : {{.*}} -> (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<0xui8>, i64, tensor<3xf32>, tensor<3xf32>)
  %3:7 = "profuse.batch_norm_index"(%x, %s, %s) {training = true, given = 12 : i64} : (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<0xui8>, i64, tensor<3xf32>, tensor<3xf32>)
  // CHECK-NEXT: "profuse.native_batch_norm_backward"(%arg0, %arg0, %arg1, %arg1, %arg1) {given = 25 : i64, training = true} : {{.*}} -> (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>)
  %4:3 = "profuse.native_batch_norm_backward"(%x, %x, %s, %s, %s) {training = true, given = 25 : i64} : (tensor<2x3x4xf16>, tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>)
  // CHECK-NEXT: "profuse.batch_norm_index_backward"(%arg2, %arg0, %arg0, %arg1, %arg1, %arg1, %{{.*}}#3) {given = 25 : i64, training = true} : {{.*}} -> (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>)
  %5:3 = "profuse.batch_norm_index_backward"(%i, %x, %x, %s, %s, %s, %3#3) {training = true, given = 25 : i64} : (i64, tensor<2x3x4xf16>, tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<0xui8>) -> (tensor<2x3x4xf16>, tensor<3xf32>, tensor<3xf32>)
  // CHECK-NEXT: "profuse.values_per_channel"(%arg3) {dtype = f32} : (i64) -> tensor<f32>
  %6 = "profuse.values_per_channel"(%n) {dtype = f32} : (i64) -> tensor<f32>
  return
}
