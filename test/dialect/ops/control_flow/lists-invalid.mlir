// RUN: profuse-opt --split-input-file --verify-diagnostics %s

func.func @operands(%x: !profuse.tensor, %l: !profuse.list) {
  // expected-error@+1 {{'profuse.list_construct' operand 0 is a list; lists hold tensors}}
  %0 = "profuse.list_construct"(%l) : (!profuse.list) -> !profuse.list
  // expected-error@+1 {{'profuse.list_append' operand 0 must be a list, not !profuse.tensor}}
  "profuse.list_append"(%x, %x) : (!profuse.tensor, !profuse.tensor) -> ()
  // expected-error@+1 {{'profuse.list_append' must have 2 operands, not 1}}
  "profuse.list_append"(%l) : (!profuse.list) -> ()
  // expected-error@+1 {{'profuse.list_unpack' operand 0 must be a list, not !profuse.tensor}}
  %1 = "profuse.list_unpack"(%x) : (!profuse.tensor) -> !profuse.tensor
  // expected-error@+1 {{'profuse.list_construct' result has type !profuse.tensor, but its operands make it !profuse.list}}
  %2 = "profuse.list_construct"(%x) : (!profuse.tensor) -> !profuse.tensor
  return
}
