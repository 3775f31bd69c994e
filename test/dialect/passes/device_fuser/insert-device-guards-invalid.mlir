// RUN: profuse-opt %s -p insert-device-guards --verify-diagnostics --split-input-file

// R3.36: an operand that an observer gives has no other user than its conditional constant.
func.func @read_twice(%x: tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %n: i64) -> tensor<8xf32> {
  %0 = "profuse.profile_value"(%n) {site = 0 : i64} : (i64) -> i64
  %1 = "profuse.cuda_group"(%x, %0) {callee = @cuda_group_0} : (tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, i64) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
// expected-error@+1 {{operand 1 of a device group is read beside its conditional constant}}
func.func private @cuda_group_0(%x: tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %n: i64) -> tensor<8xf32> {
  %0 = "profuse.constant"(%n) {value = 0 : i64} : (i64) -> i64
  %1 = "profuse.late"(%x, %0) {op = "sum", names = ["axes"]} : (tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, i64) -> tensor<8xf32>
  %2 = "profuse.mul"(%1, %n) : (tensor<8xf32>, i64) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

func.func @no_function(%x: tensor<4xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<4xf32> {
  // expected-error@+1 {{'profuse.cuda_group' no function @nowhere in the module}}
  %1 = "profuse.cuda_group"(%x) {callee = @nowhere} : (tensor<4xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
