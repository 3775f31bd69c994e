// RUN: profuse-opt %s -p differentiate --verify-diagnostics --split-input-file
// RUN: not profuse-opt %s -p 'differentiate{wrt=0:x}' 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not profuse-opt %s -p 'differentiate{wrt=1}' 2>&1 | FileCheck %s --check-prefix=NONE

// TEXT: wrt='0:x' is no list of numbers, as in 0:2
// NONE: @none cannot be differentiated by inputs [1]

func.func @none(%x: tensor<5xf64>, %y: tensor<5xi64>) -> tensor<5xf64> {
  return %x : tensor<5xf64>
}

// -----

// expected-error@+1 {{input 0 of @unknown is !profuse.tensor: gradients need its dtype and rank}}
func.func @unknown(%x: !profuse.tensor) -> !profuse.tensor {
  return %x : !profuse.tensor
}

// -----

func.func @grows(%x: tensor<?xf64>, %n: i64) -> tensor<?xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  // expected-error@+1 {{a loop that carries arrays whose sizes change has no gradient}}
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<?xf64>) : i64 {
    %w = "profuse.sin"(%v) : (tensor<?xf64>) -> tensor<?xf64>
    scf.yield %w : tensor<?xf64>
  }
  return %r : tensor<?xf64>
}
