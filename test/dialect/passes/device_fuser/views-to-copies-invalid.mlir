// RUN: profuse-opt %s -p views-to-copies --verify-diagnostics --split-input-file

func.func @unfit(%x: tensor<4x6xf32>) -> !profuse.tensor {
  // expected-error@+1 {{cannot reshape array of size 24 into shape (5,)}}
  %0 = "profuse.reshape_copy"(%x) {implicit = true, shape = array<i64: 5>} : (tensor<4x6xf32>) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// -----

func.func @not_a_flag(%x: tensor<4x6xf32>) -> !profuse.tensor {
  // expected-error@+1 {{attribute 'implicit' must be of kind bool}}
  %0 = "profuse.unsqueeze_copy"(%x) {axes = array<i64: 0>, implicit = 2 : i64} : (tensor<4x6xf32>) -> !profuse.tensor
  return %0 : !profuse.tensor
}
