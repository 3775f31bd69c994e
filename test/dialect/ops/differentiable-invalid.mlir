// RUN: profuse-opt %s --verify-diagnostics --split-input-file

func.func @types(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.rg_check' 1 operands but 2 types}}
  %0:2 = "profuse.rg_check"(%x) {types = [tensor<?xf32>, tensor<?xf32>]} : (!profuse.tensor) -> (tensor<?xf32>, i1)
  return
}

// -----

func.func @neither(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.diff_graph' needs a callee, or a forward and a reverse half}}
  %0 = "profuse.diff_graph"(%x) : (!profuse.tensor) -> !profuse.tensor
  return
}

// -----

func.func @both(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.diff_graph' needs a callee, or a forward and a reverse half}}
  %0 = "profuse.diff_graph"(%x) {callee = @f, forward = @f, reverse = @f} : (!profuse.tensor) -> !profuse.tensor
  return
}
func.func private @f(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}

// -----

func.func @early(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.diff_graph' has df_output_vjps before it is differentiated}}
  %0 = "profuse.diff_graph"(%x) {callee = @f, df_output_vjps = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return
}
func.func private @f(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}

// -----

func.func @indices(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.diff_graph' df_output_vjps names one of 1 operands that there is not}}
  %0 = "profuse.diff_graph"(%x) {forward = @f, reverse = @f, f_real_outputs = 1 : i64, df_input_vjps = array<i64: 0>, df_output_vjps = array<i64: 1>} : (!profuse.tensor) -> !profuse.tensor
  return
}
func.func private @f(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}

// -----

func.func @signature(%x: !profuse.tensor) {
  // expected-error@+2 {{'profuse.diff_graph' @f returns 1 values, fewer than the indices name}}
  // expected-error@+1 {{'profuse.diff_graph' the indices name 2 inputs of @f, which takes 1}}
  %0 = "profuse.diff_graph"(%x) {forward = @f, reverse = @f, f_real_outputs = 1 : i64, df_input_vjps = array<i64: 0>, df_input_captured_outputs = array<i64: 1>, df_output_vjps = array<i64: 0>} : (!profuse.tensor) -> !profuse.tensor
  return
}
func.func private @f(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}

// -----

func.func @callee(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.diff_graph' passes 1 arguments, but @f has 2}}
  %0 = "profuse.diff_graph"(%x) {callee = @f} : (!profuse.tensor) -> !profuse.tensor
  return
}
func.func private @f(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}
