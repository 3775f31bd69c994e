// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @other_kind() -> !profuse.bools {
  // expected-error@+1 {{result has type !profuse.bools, but its operands make it !profuse.ints}}
  %0 = "profuse.constant"() {value = array<i64: 1>} : () -> !profuse.bools
  return %0 : !profuse.bools
}

// -----

func.func @none_is_no_mode() -> !profuse.str {
  // expected-error@+1 {{result has type !profuse.str, but its operands make it !profuse.ints}}
  %0 = "profuse.constant"() {value = unit} : () -> !profuse.str
  return %0 : !profuse.str
}

// -----

// expected-error@+1 {{unknown type '!profuse.floats'}}
func.func @no_such_type(%x: !profuse.floats) {
  return
}

// -----

func.func @no_tensor(%s: !profuse.str) -> !profuse.ints {
  // expected-error@+1 {{operand 0 must be a tensor or a number, not !profuse.str}}
  %0 = "profuse.sizes"(%s) : (!profuse.str) -> !profuse.ints
  return %0 : !profuse.ints
}

// -----

func.func @a_size_is_not_sizes(%n: i64, %s: !profuse.ints) -> !profuse.ints {
  // expected-error@+1 {{operand 1 must be of type !profuse.ints, not i64}}
  %0 = "profuse.broadcast_sizes"(%s, %n) : (!profuse.ints, i64) -> !profuse.ints
  return %0 : !profuse.ints
}

// -----

func.func @no_chunks(%s: !profuse.ints) -> !profuse.ints {
  // expected-error@+1 {{number of chunks must be larger than 0, not 0}}
  %0:2 = "profuse.chunk_sizes"(%s) {chunks = 0 : i64} : (!profuse.ints) -> (!profuse.ints, !profuse.ints)
  return %0#0 : !profuse.ints
}

// -----

func.func @other_value(%s: !profuse.ints) -> i1 {
  // expected-error@+1 {{operand 0 must be of type !profuse.str, not !profuse.ints}}
  %0 = "profuse.value_eq"(%s) {value = "tanh"} : (!profuse.ints) -> i1
  return %0 : i1
}

// -----

func.func @floats_are_not_compared(%s: f64) -> i1 {
  // expected-error@+1 {{compares bools, integers, lists of them, and strings}}
  %0 = "profuse.value_eq"(%s) {value = 1.0 : f64} : (f64) -> i1
  return %0 : i1
}

// -----

func.func @no_bool(%n: i64) -> i1 {
  // expected-error@+1 {{operand 0 must be of type i1, not i64}}
  %0 = "profuse.all_true"(%n) : (i64) -> i1
  return %0 : i1
}

// -----

func.func @no_xor(%n: i64, %b: i1) -> i1 {
  // expected-error@+1 {{operand 0 must be of type i1, not i64}}
  %0 = "profuse.bool_xor"(%n, %b) : (i64, i1) -> i1
  return %0 : i1
}

// -----

func.func @no_view(%x: !profuse.tensor, %s: !profuse.ints) -> i1 {
  // expected-error@+1 {{operand 0 must be of type !profuse.ints, not !profuse.tensor}}
  %0 = "profuse.view_guard"(%x, %s) {constraint = ""} : (!profuse.tensor, !profuse.ints) -> i1
  return %0 : i1
}
