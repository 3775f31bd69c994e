// RUN: profuse-opt %s -p free-group-sizes --verify-diagnostics --split-input-file

func.func @no_function(%x: !profuse.tensor) -> !profuse.tensor {
  %0:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32, {device = "cuda:0", strides = "contiguous"}>]} : (!profuse.tensor) -> (tensor<?xf32, {device = "cuda:0", strides = "contiguous"}>, i1)
  %1 = scf.if %0#1 -> (!profuse.tensor) {
    // expected-error@+1 {{'profuse.cuda_group' no function @nowhere in the module}}
    %2 = "profuse.cuda_group"(%0#0) {callee = @nowhere} : (tensor<?xf32, {device = "cuda:0", strides = "contiguous"}>) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    scf.yield %x : !profuse.tensor
  }
  return %1 : !profuse.tensor
}
