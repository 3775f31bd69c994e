// RUN: profuse-opt %s --pass-pipeline=inline-calls --verify-diagnostics --split-input-file

func.func private @one(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = func.call @two(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @two(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{@one calls itself}}
  %0 = func.call @one(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}

// -----

func.func private @declared(!profuse.tensor) -> !profuse.tensor
func.func @main(%x: !profuse.tensor) -> !profuse.tensor {
  // expected-error@+1 {{function @declared has no body}}
  %0 = func.call @declared(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
