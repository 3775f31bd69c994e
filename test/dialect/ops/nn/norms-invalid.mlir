// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @optional(%x: tensor<3x4xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'profuse.native_layer_norm' given = 4 names more than the 2 optional operands}}
  %0:3 = "profuse.native_layer_norm"(%x, %w) {shape = array<i64: 4>, given = 4 : i64} : (tensor<3x4xf32>, tensor<4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_layer_norm' given = 3 names 2 optional operands, but there are 1}}
  %1:3 = "profuse.native_layer_norm"(%x, %w) {shape = array<i64: 4>, given = 3 : i64} : (tensor<3x4xf32>, tensor<4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_layer_norm' given = 0 names 0 optional operands, but there are 1}}
  %2:3 = "profuse.native_layer_norm"(%x, %w) {shape = array<i64: 4>} : (tensor<3x4xf32>, tensor<4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return
}

// -----

func.func @layer_norms(%x: tensor<3x4xf32>, %w: tensor<3xf32>, %s: tensor<3x1xf32>) {
  // expected-error@+1 {{'profuse.native_layer_norm' native_layer_norm over axes of sizes (3,): the array has shape (3,4)}}
  %0:3 = "profuse.native_layer_norm"(%x) {shape = array<i64: 3>} : (tensor<3x4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_layer_norm' native_layer_norm: weight has shape (3,), not (4,)}}
  %1:3 = "profuse.native_layer_norm"(%x, %w) {shape = array<i64: 4>, given = 1 : i64} : (tensor<3x4xf32>, tensor<3xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_layer_norm' shape [] does not give the sizes of at least one axis}}
  %2:3 = "profuse.native_layer_norm"(%x) {shape = array<i64>} : (tensor<3x4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_layer_norm_backward' mask names 2 of 3 gradients}}
  %3:3 = "profuse.native_layer_norm_backward"(%x, %x, %s, %s) {shape = array<i64: 4>, mask = array<i1: true, true>} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x1xf32>, tensor<3x1xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_layer_norm_backward' native_layer_norm_backward over axes of sizes (4,): the array has shape (3,1)}}
  %4:3 = "profuse.native_layer_norm_backward"(%s, %x, %s, %s) {shape = array<i64: 4>} : (tensor<3x1xf32>, tensor<3x4xf32>, tensor<3x1xf32>, tensor<3x1xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return
}

// -----

func.func @group_norm(%x: tensor<2x6x4xf32>, %w: tensor<4xf32>) {
  // expected-error@+1 {{'profuse.native_group_norm' 6 channels do not divide into 4 groups}}
  %0:3 = "profuse.native_group_norm"(%x) {groups = 4 : i64} : (tensor<2x6x4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_group_norm' groups = 0 is less than 1}}
  %1:3 = "profuse.native_group_norm"(%x) {groups = 0 : i64} : (tensor<2x6x4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_group_norm' native_group_norm takes an array of at least 2 axes, not of 1}}
  %2:3 = "profuse.native_group_norm"(%w) {groups = 2 : i64} : (tensor<4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return
}

// -----

func.func @batch_norms(%x: tensor<2x3x4xf32>, %one: tensor<1x3xf32>, %s: tensor<3xf32>, %w: tensor<4xf32>, %i: tensor<2x3xi64>, %v: tensor<3xf32>) {
  // expected-error@+1 {{'profuse.batch_norm' Expected more than 1 value per channel when training}}
  %0 = "profuse.batch_norm"(%one) {training = true} : (tensor<1x3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.batch_norm' running_mean and running_var are needed where training is false}}
  %1 = "profuse.batch_norm"(%x, %s) {training = false, given = 1 : i64} : (tensor<2x3x4xf32>, tensor<3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.batch_norm' batch_norm: weight has shape (4,), not (3,)}}
  %2 = "profuse.batch_norm"(%x, %w) {training = true, given = 1 : i64} : (tensor<2x3x4xf32>, tensor<4xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.batch_norm' batch_norm takes arrays of real floats, not of int64}}
  %3 = "profuse.batch_norm"(%i) {training = true} : (tensor<2x3xi64>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.batch_norm' x has 1 axes, of which axis 1 cannot have the channels}}
  %4 = "profuse.batch_norm"(%v) {training = true} : (tensor<3xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.native_batch_norm_backward' native_batch_norm_backward takes the saved statistics where training is True}}
  %5:3 = "profuse.native_batch_norm_backward"(%x, %x) {training = true} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.native_batch_norm_backward' native_batch_norm_backward: grad has shape (1,3), not (2,3,4)}}
  %6:3 = "profuse.native_batch_norm_backward"(%one, %x, %s, %s) {training = true, given = 24 : i64} : (tensor<1x3xf32>, tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  return
}
