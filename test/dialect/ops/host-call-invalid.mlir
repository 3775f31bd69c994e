// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @calls(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'profuse.host_call' os.system is no function that a graph may call}}
  %0 = "profuse.host_call"(%x) {function = "os.system", arguments = "x0"} : (tensor<4x2xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.host_call' numpy.fromfile is no function that a graph may call}}
  %1 = "profuse.host_call"(%x) {function = "numpy.fromfile", arguments = "x0"} : (tensor<4x2xf32>) -> !profuse.tensor
  // expected-error@+1 {{'profuse.host_call' the arguments have places for operands [1], 1 are given}}
  %2 = "profuse.host_call"(%x) {function = "numpy.sort", arguments = "x1"} : (tensor<4x2xf32>) -> !profuse.tensor
  // expected-error@+1 {{is no list of arguments}}
  %3 = "profuse.host_call"(%x) {function = "numpy.sort", arguments = "exec(1)"} : (tensor<4x2xf32>) -> !profuse.tensor
  return
}
