// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @too_few_types(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{1 operands but 0 types}}
  %0:2 = "profuse.cuda_guard"(%x) {types = []} : (!profuse.tensor) -> (tensor<4xf32>, i1)
  return %0#1 : i1
}

// -----

func.func @other_dtype(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{result 0 has type tensor<?xf64>, but its operands make it tensor<?xf32>}}
  %0:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>]} : (!profuse.tensor) -> (tensor<?xf64>, i1)
  return %0#1 : i1
}

// -----

func.func @no_sizes(%n: i64) -> i1 {
  // expected-error@+1 {{operand 0 must be of type !profuse.ints, not i64}}
  %0 = "profuse.size_eq"(%n) {reference = array<i64: 4>} : (i64) -> i1
  return %0 : i1
}

// -----

func.func @negative(%s: !profuse.ints) -> i1 {
  // expected-error@+1 {{reference has a negative size: -1}}
  %0 = "profuse.size_eq"(%s) {reference = array<i64: -1>} : (!profuse.ints) -> i1
  return %0 : i1
}

// -----

func.func @no_axis(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{there is no axis 1 of operand 0}}
  %0:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>], equal = [array<i64: 0, 0, 0, 1>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  return %0#1 : i1
}

// -----

func.func @no_axes(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{equal has [0, 0], which is not an operand, an axis, an operand and an axis}}
  %0:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>], equal = [array<i64: 0, 0>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  return %0#1 : i1
}

// -----

func.func @no_name(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{fit cannot be read: n names no axis of an operand}}
  %0:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>], fit = ["s0_0 == n"]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  return %0#1 : i1
}

// -----

func.func @no_relation(%x: !profuse.tensor) -> i1 {
  // expected-error@+1 {{fit cannot be read: 's0_0' has no ==}}
  %0:2 = "profuse.cuda_guard"(%x) {types = [tensor<4xf32>], fit = ["s0_0"]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  return %0#1 : i1
}
