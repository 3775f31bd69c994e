// A6: a relaxed guard that was written without relations between sizes gets those that its group needs.
// RUN: profuse-opt -p free-group-sizes %s | FileCheck %s

// CHECK-LABEL: func.func @related(
// CHECK:         "profuse.cuda_guard"(%arg0, %arg1) {equal = [array<i64: 0, 1, 1, 0>], types =
func.func @related(%x: !profuse.tensor, %y: !profuse.tensor) -> (!profuse.tensor, !profuse.tensor) {
  %0:3 = "profuse.cuda_guard"(%x, %y) {types = [tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<8x3xf32, {device = "cuda:0", strides = "contiguous"}>]} : (!profuse.tensor, !profuse.tensor) -> (tensor<?x?xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<?x?xf32, {device = "cuda:0", strides = "contiguous"}>, i1)
  %1 = scf.if %0#2 -> (!profuse.tensor) {
    // CHECK: "profuse.cuda_group"({{.*}}) {callee = @cuda_group_0_0}
    %2 = "profuse.cuda_group"(%0#0, %0#1) {callee = @cuda_group_0} : (tensor<?x?xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<?x?xf32, {device = "cuda:0", strides = "contiguous"}>) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    %2 = "profuse.call_fallback"(%x, %y) {callee = @fallback_0} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }
  // CHECK:       "profuse.cuda_guard"(%arg0, %arg1) {equal = [array<i64: 0, 1, 1, 0>], types =
  %3:3 = "profuse.cuda_guard"(%x, %y) {types = [tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<8x1xf32, {device = "cuda:0", strides = "contiguous"}>]} : (!profuse.tensor, !profuse.tensor) -> (tensor<?x?xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<?x1xf32, {device = "cuda:0", strides = "contiguous"}>, i1)
  %4 = scf.if %3#2 -> (!profuse.tensor) {
    // CHECK: "profuse.cuda_group"({{.*}}) {callee = @cuda_group_0} :
    %5 = "profuse.cuda_group"(%x, %y) {callee = @cuda_group_0} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %5 : !profuse.tensor
  } else {
    %5 = "profuse.call_fallback"(%x, %y) {callee = @fallback_0} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %5 : !profuse.tensor
  }
  return %1, %4 : !profuse.tensor, !profuse.tensor
}

// What nobody checks fits no other size: the guard asks for those in its types.
// CHECK-LABEL: func.func @unchecked(
// CHECK:         "profuse.cuda_guard"(%arg0) {fit = ["s0_0 == 4", "s0_1 == 8"], types =
func.func @unchecked(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0:2 = "profuse.cuda_guard"(%x) {types = [tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>]} : (!profuse.tensor) -> (tensor<?x?xf32, {device = "cuda:0", strides = "contiguous"}>, i1)
  %1 = scf.if %0#1 -> (!profuse.tensor) {
    %2 = "profuse.cuda_group"(%0#0, %y) {callee = @cuda_group_1} : (tensor<?x?xf32, {device = "cuda:0", strides = "contiguous"}>, !profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    %2 = "profuse.call_fallback"(%x, %y) {callee = @fallback_0} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }
  return %1 : !profuse.tensor
}

// A group with a guard of its own is none of the outer one's.
// CHECK-LABEL: func.func @nested(
// CHECK:         "profuse.cuda_guard"(%arg0) {types =
func.func @nested(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0:2 = "profuse.cuda_guard"(%x) {types = [tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>]} : (!profuse.tensor) -> (tensor<?x?xf32, {device = "cuda:0", strides = "contiguous"}>, i1)
  %1 = scf.if %0#1 -> (!profuse.tensor) {
    %2:3 = "profuse.type_check"(%x, %y) {types = [tensor<4x8xf32>, tensor<4x8xf32>]} : (!profuse.tensor, !profuse.tensor) -> (tensor<4x8xf32>, tensor<4x8xf32>, i1)
    %3 = scf.if %2#2 -> (!profuse.tensor) {
      %4 = "profuse.fusion_group"(%x, %2#1) {callee = @cuda_group_1} : (!profuse.tensor, tensor<4x8xf32>) -> !profuse.tensor
      scf.yield %4 : !profuse.tensor
    } else {
      scf.yield %x : !profuse.tensor
    }
    scf.yield %3 : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  return %1 : !profuse.tensor
}

// CHECK-LABEL: func.func private @cuda_group_0(
// CHECK-SAME:    dims = ["s0_0", "s0_1"]{{.*}}dims = ["s0_1", "1"]
func.func private @cuda_group_0(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.matmul"(%x, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

func.func private @cuda_group_1(%x: tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, %y: tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<4x8xf32> {
  %0 = "profuse.add"(%x, %y) : (tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>, tensor<4x8xf32, {device = "cuda:0", strides = "contiguous"}>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func private @fallback_0(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.matmul"(%x, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
