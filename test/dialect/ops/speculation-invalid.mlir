// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @no_site(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{needs attribute 'site'}}
  %0 = "profuse.profile"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// -----

func.func @negative_site(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{site must not be negative}}
  %0 = "profuse.profile"(%x) {site = -1 : i64} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// -----

func.func @tensor_value(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{observes values that are no tensors, not !profuse.tensor}}
  %0 = "profuse.profile_value"(%x) {site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// -----

func.func @negative_count(%n: i64) -> i64 {
  // expected-error@+1 {{none must not be negative}}
  %0 = "profuse.profile_value"(%n) {site = 0 : i64, none = -1 : i64} : (i64) -> i64
  return %0 : i64
}

// -----

func.func @too_few_types(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{1 operands but 0 types}}
  %0:2 = "profuse.type_check"(%x) {types = []} : (!profuse.tensor) -> (tensor<4xf32>, i1)
  return %0#1 : i1
}

// -----

func.func @scalar_operand(%n: i64) -> i1 {
  // expected-error@+2 {{operand 0 must be a tensor, not i64}}
  // expected-error@+1 {{expected type 0 must be a tensor type, not i64}}
  %0:2 = "profuse.type_check"(%n) {types = [i64]} : (i64) -> (i64, i1)
  return %0#1 : i1
}

// -----

func.func @other_result(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{result 0 has type tensor<5xf32>, but its operands make it tensor<4xf32>}}
  %0:2 = "profuse.type_check"(%x) {types = [tensor<4xf32>]} : (!profuse.tensor) -> (tensor<5xf32>, i1)
  return %0#1 : i1
}

// -----

func.func @incomplete(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{expected type 0 must have a dtype and all sizes}}
  %0:2 = "profuse.dynamic_guard"(%x) {types = [tensor<?xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  return %0#1 : i1
}

// -----

func.func @unbound(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{no operand has a dimension that is s0 or a multiple of it}}
  %0:2 = "profuse.dynamic_guard"(%x) {types = [tensor<?xf32, {dims = ["s0 + 1"]}>]} : (!profuse.tensor) -> (tensor<?xf32, {dims = ["s0 + 1"]}>, i1)
  return %0#1 : i1
}

// -----

func.func @no_callee(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{no function @nowhere in the module}}
  %0 = "profuse.fusion_group"(%x) {callee = @nowhere} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
