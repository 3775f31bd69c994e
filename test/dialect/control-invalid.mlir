// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @condition(%c: tensor<i1>) {
  // expected-error@+1 {{'scf.if' op operand #0 must be 1-bit signless integer, but got 'tensor<i1>'}}
  "scf.if"(%c) ({
    scf.yield
  }, {}) : (tensor<i1>) -> ()
  return
}

// -----

func.func @yields(%c: i1, %x: !profuse.tensor) {
  // expected-error@+1 {{along control flow edge}}
  %0 = scf.if %c -> !profuse.tensor {
    scf.yield %x : !profuse.tensor
  } else {
    scf.yield
  }
  return
}

// -----

func.func @steps(%n: index) {
  // expected-error@+1 {{'scf.for' type 'index' is not a profuse type}}
  scf.for %i = %n to %n step %n {
  }
  return
}
