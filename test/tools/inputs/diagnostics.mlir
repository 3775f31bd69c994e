func.func @found(%x: !profuse.tensor) {
  // expected-error@below {{unknown op}}
  %0 = "profuse.nosuch"(%x) : (!profuse.tensor) -> !profuse.tensor
  return
}
// -----
func.func @missing(%x: !profuse.tensor) {
  // expected-error@+1 {{nothing of the kind}}
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  return
}
