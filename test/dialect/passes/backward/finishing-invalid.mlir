// RUN: profuse-opt %s --pass-pipeline=move-post-accumulate-hooks --verify-diagnostics --split-input-file

// expected-error@+1 {{@f is no captured backward run, which takes five lists}}
func.func @f(%x: !profuse.tensor) {
  return
}

// -----

// R4.38: the accumulation of the same leaf must exist.
func.func @g(%inputs: !profuse.list, %sizes: !profuse.list, %scalars: !profuse.list, %hooks: !profuse.list, %packed: !profuse.list) {
  %leaf = "profuse.list_get"(%inputs) {index = 0 : i64} : (!profuse.list) -> !profuse.tensor
  %hook = "profuse.list_get"(%hooks) {index = 0 : i64} : (!profuse.list) -> !profuse.tensor
  // expected-error@+1 {{a post-accumulate hook is called on a leaf that accumulates nothing}}
  "profuse.call_hook"(%hook, %leaf) {hook_type = "post_acc_grad_hook", present = array<i1: true>} : (!profuse.tensor, !profuse.tensor) -> ()
  return
}
