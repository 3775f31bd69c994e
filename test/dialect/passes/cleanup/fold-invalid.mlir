// RUN: not profuse-opt -p "fold{max-elements=1e3}" %s 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not profuse-opt -p "fold{max-element=1}" %s 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt --no-verify -p fold %s | FileCheck %s

// VALUE: profuse-opt: error: pass fold: option 'max-elements' must be an integer, not '1e3'
// OPTION: profuse-opt: error: pass fold has no option 'max-element' (did you mean 'max-elements'?)

// Ops that can never run are kept: running is where the user sees the error.
// CHECK: "profuse.add"
func.func @f() -> tensor<2xf32> {
  %0 = "profuse.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = "profuse.constant"() {value = dense<1.0> : tensor<3xf32>} : () -> tensor<3xf32>
  %2 = "profuse.add"(%0, %1) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
