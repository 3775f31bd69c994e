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

func.func @no_list(%n: i64) -> i1 {
  // expected-error@+1 {{operand 0 must be a list, not i64}}
  %0 = "profuse.size_eq"(%n) {reference = array<i64: 4>} : (i64) -> i1
  return %0 : i1
}

// -----

func.func @negative(%s: !profuse.list) -> i1 {
  // expected-error@+1 {{reference has a negative size: -1}}
  %0 = "profuse.size_eq"(%s) {reference = array<i64: -1>} : (!profuse.list) -> i1
  return %0 : i1
}
