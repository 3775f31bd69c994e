// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @no_op(%x: !profuse.tensor, %k: i1) {
  // expected-error@+1 {{unknown op 'summ'}}
  %0 = "profuse.late"(%x, %k) {op = "summ", names = ["keepdims"]} : (!profuse.tensor, i1) -> !profuse.tensor
  return
}

// -----

func.func @no_attribute(%x: !profuse.tensor, %k: i1) {
  // expected-error@+1 {{profuse.sum has no attribute 'keepdim'}}
  %0 = "profuse.late"(%x, %k) {op = "sum", names = ["keepdim"]} : (!profuse.tensor, i1) -> !profuse.tensor
  return
}

// -----

func.func @other_type(%x: !profuse.tensor, %k: i64) {
  // expected-error@+1 {{attribute 'keepdims' of profuse.sum may be i1, not i64}}
  %0 = "profuse.late"(%x, %k) {op = "sum", names = ["keepdims"]} : (!profuse.tensor, i64) -> !profuse.tensor
  return
}

// -----

func.func @a_tensor(%x: !profuse.tensor) {
  // expected-error@+1 {{attribute 'axes' of profuse.sum may be !profuse.ints or i64, not !profuse.tensor}}
  %0 = "profuse.late"(%x, %x) {op = "sum", names = ["axes"]} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @too_few(%k: i1) {
  // expected-error@+1 {{profuse.sum takes 1 operands, not 0}}
  %0 = "profuse.late"(%k) {op = "sum", names = ["keepdims"]} : (i1) -> !profuse.tensor
  return
}

// -----

func.func @needs_more(%x: !profuse.tensor, %n: i64) {
  // expected-error@+1 {{profuse.chunk needs attribute 'chunks', which is not named}}
  %0 = "profuse.late"(%x, %n) {op = "chunk", names = ["axis"]} : (!profuse.tensor, i64) -> !profuse.tensor
  return
}

// -----

func.func @twice(%x: !profuse.tensor, %k: i1) {
  // expected-error@+1 {{names an attribute twice}}
  %0 = "profuse.late"(%x, %k, %k) {op = "sum", names = ["keepdims", "keepdims"]} : (!profuse.tensor, i1, i1) -> !profuse.tensor
  return
}

// -----

func.func @none(%x: !profuse.tensor) {
  // expected-error@+1 {{names no attribute}}
  %0 = "profuse.late"(%x) {op = "sum", names = []} : (!profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @writes(%x: !profuse.tensor, %k: i1) {
  // expected-error@+1 {{profuse.list_append does more than compute its results}}
  %0 = "profuse.late"(%x, %k) {op = "list_append", names = ["a"]} : (!profuse.tensor, i1) -> !profuse.tensor
  return
}

// -----

func.func @of_a_symbol(%x: !profuse.tensor, %k: i1) {
  // expected-error@+1 {{profuse.fallback_graph needs callee, which no value of the run can be}}
  %0 = "profuse.late"(%x, %k) {op = "fallback_graph", names = ["a"]} : (!profuse.tensor, i1) -> !profuse.tensor
  return
}

// -----

func.func @conditional_of_another_type(%n: i64) {
  // expected-error@+1 {{is of type i1, but stands for a value of type i64}}
  %0 = "profuse.constant"(%n) {value = true} : (i64) -> i1
  return
}

// -----

func.func @conditional_tensor(%x: !profuse.tensor) {
  // expected-error@+1 {{cannot stand for a tensor}}
  %0 = "profuse.constant"(%x) {value = 1 : i64} : (!profuse.tensor) -> i64
  return
}

// -----

func.func @conditional_on_two(%k: i1) {
  // expected-error@+1 {{depends on one value at most, not on 2}}
  %0 = "profuse.constant"(%k, %k) {value = true} : (i1, i1) -> i1
  return
}
