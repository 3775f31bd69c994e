// R4.31 - R4.39: where hooks and accumulations stand in a captured backward run. A tracer has pushed
// them to the end; each pass moves its own.
// RUN: profuse-opt %s --pass-pipeline=move-unpack-hooks --verify-each | FileCheck %s --check-prefix=UNPACK
// RUN: profuse-opt %s --pass-pipeline=move-tensor-pre-hooks --verify-each | FileCheck %s --check-prefix=TENSOR
// RUN: profuse-opt %s --pass-pipeline=move-pre-hooks --verify-each | FileCheck %s --check-prefix=PRE
// RUN: profuse-opt %s --pass-pipeline=move-accumulations --verify-each | FileCheck %s --check-prefix=ACC
// RUN: profuse-opt %s --pass-pipeline=move-pre-hooks-late --verify-each | FileCheck %s --check-prefix=LATE
// RUN: profuse-opt %s --pass-pipeline=move-accumulations,move-post-accumulate-hooks --verify-each | FileCheck %s --check-prefix=POSTACC
// RUN: profuse-opt %s --pass-pipeline=move-accumulations,move-post-accumulate-hooks,move-post-hooks --verify-each | FileCheck %s --check-prefix=POST
// RUN: profuse-opt %s --pass-pipeline=move-unpack-hooks{keep-order=true} --verify-each | FileCheck %s --check-prefix=KEEP
// RUN: profuse-opt %s --pass-pipeline=remove-unused-gradients --verify-each | FileCheck %s --check-prefix=DCE

func.func @CompiledAutograd0(%inputs: !profuse.list, %sizes: !profuse.list, %scalars: !profuse.list, %hooks: !profuse.list, %packed: !profuse.list) {
  %g = "profuse.list_get"(%inputs) {index = 0 : i64} : (!profuse.list) -> !profuse.tensor
  %x = "profuse.list_get"(%inputs) {index = 1 : i64} : (!profuse.list) -> !profuse.tensor
  %leaf = "profuse.list_get"(%inputs) {index = 2 : i64} : (!profuse.list) -> !profuse.tensor
  %unused = "profuse.list_get"(%sizes) {index = 0 : i64} : (!profuse.list) -> i64
  %unpack = "profuse.list_get"(%hooks) {index = 0 : i64} : (!profuse.list) -> !profuse.tensor
  %tensor = "profuse.list_get"(%hooks) {index = 1 : i64} : (!profuse.list) -> !profuse.tensor
  %pre = "profuse.list_get"(%hooks) {index = 2 : i64} : (!profuse.list) -> !profuse.tensor
  %acc = "profuse.list_get"(%hooks) {index = 3 : i64} : (!profuse.list) -> !profuse.tensor
  %post = "profuse.list_get"(%hooks) {index = 4 : i64} : (!profuse.list) -> !profuse.tensor
  %p = "profuse.list_get"(%packed) {index = 0 : i64} : (!profuse.list) -> !profuse.tensor
  %y = "profuse.call_hook"(%unpack, %p) {hook_type = "unpack_hook", present = array<i1: true>, replaced = 1 : i64} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %0 = "profuse.mul"(%g, %x) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %1 = "profuse.exp"(%0) : (!profuse.tensor) -> !profuse.tensor
  %2 = "profuse.neg"(%0) : (!profuse.tensor) -> !profuse.tensor
  %3 = "profuse.dim"(%2) {axis = 0 : i64} : (!profuse.tensor) -> i64
  %4 = "profuse.call_hook"(%pre, %1) {hook_type = "pre_hook", present = array<i1: true>, replaced = 1 : i64} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %5 = "profuse.tanh"(%2) : (!profuse.tensor) -> !profuse.tensor
  %6 = "profuse.mul"(%4, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %7 = "profuse.call_hook"(%tensor, %5) {hook_type = "tensor_pre_hook", present = array<i1: true>, replaced = 1 : i64} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %8 = "profuse.add"(%6, %7) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %9 = "profuse.exp"(%8) : (!profuse.tensor) -> !profuse.tensor
  "profuse.accumulate_grad"(%leaf, %8) : (!profuse.tensor, !profuse.tensor) -> ()
  "profuse.final_callbacks"() : () -> ()
  "profuse.call_hook"(%post, %8) {hook_type = "post_hook", present = array<i1: true>} : (!profuse.tensor, !profuse.tensor) -> ()
  "profuse.call_hook"(%acc, %leaf) {hook_type = "post_acc_grad_hook", present = array<i1: true>} : (!profuse.tensor, !profuse.tensor) -> ()
  return
}

// R4.33: with its element of hooks and what it unpacks, in front of the first user.
// UNPACK:      "profuse.tanh"
// UNPACK-NEXT: %[[F:.*]] = "profuse.list_get"(%arg3) {index = 0 : i64}
// UNPACK-NEXT: %[[P:.*]] = "profuse.list_get"(%arg4)
// UNPACK-NEXT: %[[Y:.*]] = "profuse.call_hook"(%[[F]], %[[P]])
// UNPACK-NEXT: "profuse.mul"(%{{.*}}, %[[Y]])

// R4.34: behind the gradient that it is given.
// TENSOR:      %[[T:.*]] = "profuse.tanh"
// TENSOR-NEXT: %[[F:.*]] = "profuse.list_get"(%arg3) {index = 1 : i64}
// TENSOR-NEXT: "profuse.call_hook"(%[[F]], %[[T]])
// TENSOR-NEXT: "profuse.mul"

// R4.35: behind the last of its arguments.
// PRE:      %[[E:.*]] = "profuse.exp"
// PRE-NEXT: %[[F:.*]] = "profuse.list_get"(%arg3) {index = 2 : i64}
// PRE-NEXT: "profuse.call_hook"(%[[F]], %[[E]])
// PRE-NEXT: "profuse.neg"

// R4.36: behind the gradient; the leaf is an element of a list.
// ACC:      %[[S:.*]] = "profuse.add"
// ACC-NEXT: "profuse.accumulate_grad"(%{{.*}}, %[[S]])
// ACC-NEXT: "profuse.exp"

// R4.37: in front of what uses its result.
// LATE:      "profuse.tanh"
// LATE-NEXT: %[[F:.*]] = "profuse.list_get"(%arg3) {index = 2 : i64}
// LATE-NEXT: %[[R:.*]] = "profuse.call_hook"(%[[F]]
// LATE-NEXT: "profuse.mul"(%[[R]]

// R4.38: behind the accumulation of the leaf.
// POSTACC:      "profuse.accumulate_grad"
// POSTACC-NEXT: %[[F:.*]] = "profuse.list_get"(%arg3) {index = 3 : i64}
// POSTACC-NEXT: "profuse.call_hook"(%[[F]]
// POSTACC-SAME: post_acc_grad_hook

// R4.39: behind the last user of its arguments.
// POST:      "profuse.add"
// POST-NEXT: "profuse.accumulate_grad"
// POST-NEXT: "profuse.list_get"(%arg3) {index = 3 : i64}
// POST-NEXT: post_acc_grad_hook
// POST-NEXT: "profuse.exp"
// POST-NEXT: "profuse.list_get"(%arg3) {index = 4 : i64}
// POST-NEXT: post_hook

// Calls of code of users do not pass each other.
// KEEP:      "profuse.dim"
// KEEP-NEXT: "profuse.list_get"(%arg3) {index = 0 : i64}
// KEEP-NEXT: "profuse.list_get"(%arg4)
// KEEP-NEXT: unpack_hook
// KEEP-NEXT: pre_hook

// R4.40: what no result, leaf or code of users needs goes; elements of lists stay.
// DCE:     "profuse.list_get"(%arg1)
// DCE-NOT: "profuse.dim"
// DCE:     "profuse.tanh"
// DCE-NOT: "profuse.exp"
// DCE:     "profuse.accumulate_grad"
// DCE:     "profuse.final_callbacks"
