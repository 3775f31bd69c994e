// RUN: not profuse-opt --no-verify -p "canonicalize-profuse{fast=true}" %s 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt --no-verify -p canonicalize-profuse %s | FileCheck %s

// OPTION: profuse-opt: error: pass canonicalize-profuse has no option 'fast'

// Double negation of bools raises in NumPy: it must not vanish.
// CHECK-COUNT-2: "profuse.neg"
func.func @f(%x: tensor<2xi1>) -> tensor<2xi1> {
  %0 = "profuse.neg"(%x) : (tensor<2xi1>) -> tensor<2xi1>
  %1 = "profuse.neg"(%0) : (tensor<2xi1>) -> tensor<2xi1>
  return %1 : tensor<2xi1>
}
