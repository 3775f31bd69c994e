// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @parts(%x: tensor<4x6xf32>) {
  // expected-error@+1 {{'profuse.pick' index 4 is out of bounds for axis 0 with size 4}}
  %0 = "profuse.pick"(%x) {index = 4} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.slice' needs attribute 'starts' (integer array)}}
  %1 = "profuse.slice"(%x) {stops = array<i64: 1>} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.slice'}}
  %2 = "profuse.slice"(%x) {starts = array<i64: 1>, stops = array<i64: 1>, axes = array<i64: 0, 1>} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.split' array split does not result in an equal division}}
  %3, %4, %5 = "profuse.split"(%x) {sections = 3} : (tensor<4x6xf32>) -> (!profuse.tensor, !profuse.tensor, !profuse.tensor)
  // expected-error@+1 {{'profuse.split' must have 2 results, not 1}}
  %6 = "profuse.split"(%x) {sections = 2} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.windows' window shape cannot be larger than input array shape}}
  %7 = "profuse.windows"(%x) {axes = array<i64: 0>, shape = array<i64: 5>} : (tensor<4x6xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.windows' 1 axes but 2 windows}}
  %8 = "profuse.windows"(%x) {axes = array<i64: 0>, shape = array<i64: 2, 2>} : (tensor<4x6xf32>) -> !profuse.tensor
  return
}
