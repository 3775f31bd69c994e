// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @no_message() {
  // expected-error@+1 {{needs attribute 'message'}}
  "profuse.warn"() : () -> ()
  return
}

// -----

func.func @message_is_no_text() {
  // expected-error@+1 {{attribute 'message' must be of kind}}
  "profuse.warn"() {message = 3 : i64} : () -> ()
  return
}

// -----

func.func @operand(%x: !profuse.tensor) {
  // expected-error@+1 {{must have 0 operands, not 1}}
  "profuse.warn"(%x) {message = "careful"} : (!profuse.tensor) -> ()
  return
}

// -----

func.func @require_without_message(%x: tensor<4xf32>, %c: tensor<i1>) {
  // expected-error@+1 {{needs attribute 'message'}}
  %0 = "profuse.require"(%x, %c) : (tensor<4xf32>, tensor<i1>) -> tensor<4xf32>
  return
}
