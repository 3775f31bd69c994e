// RUN: profuse-opt %s -p fuse-loops --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t
// RUN: profuse-opt %s -p 'fuse-loops{keep=0}' | FileCheck %s --check-prefix=KEEP
// RUN: profuse-opt %s -p 'fuse-loops{alone=2}' | FileCheck %s --check-prefix=ALONE
// RUN: profuse-opt %s -p 'fuse-loops{dynamic=true}' | FileCheck %s --check-prefix=DYN
// RUN: profuse-opt %s -p 'fuse-loops{exact=true}' | FileCheck %s --check-prefix=EXACT

// EXACT-NOT: profuse.fusion_group

// STATS-DAG: 1 a loop runs round by round: host_call: np.linalg.inv (NumPy) runs on the host, between kernels
// STATS-DAG: 1 a loop runs round by round: scf.for: sizes of its arrays vary
// STATS-DAG: 1 a loop runs round by round: warn: has side effects
// STATS-DAG: groups

// The loop is one group with what only it reads: the copy. The number that something else reads
// is computed in both places.
// CHECK-LABEL: func.func @stencil(
// CHECK-SAME:    %[[X:.*]]: tensor<8xf64>, %[[N:.*]]: i64)
// CHECK-NOT:     scf.for
// CHECK:         %[[F:.*]] = "profuse.fusion_group"(%[[X]], %[[N]]) {callee = @[[STENCIL:fusion_loop0_[0-9]+]]}
// CHECK-NOT:     scf.for
// CHECK:         return %[[F]]
// KEEP-LABEL:  func.func @stencil(
// KEEP:          scf.for
func.func @stencil(%x: tensor<8xf64>, %n: i64) -> (tensor<8xf64>, i64) {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %copy = "profuse.copy"(%x) : (tensor<8xf64>) -> tensor<8xf64>
  %upper = "profuse.sub"(%n, %one) : (i64, i64) -> i64
  %r = scf.for %t = %zero to %upper step %one iter_args(%a = %copy) -> (tensor<8xf64>) : i64 {
    %left = "profuse.slice"(%a) {starts = array<i64: 0>, stops = array<i64: 6>} : (tensor<8xf64>) -> tensor<6xf64>
    %right = "profuse.slice"(%a) {starts = array<i64: 2>, stops = array<i64: 8>} : (tensor<8xf64>) -> tensor<6xf64>
    %sum = "profuse.add"(%left, %right) : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
    %new = "profuse.slice_scatter"(%a, %sum) {starts = array<i64: 1>, stops = array<i64: 7>} : (tensor<8xf64>, tensor<6xf64>) -> tensor<8xf64>
    scf.yield %new : tensor<8xf64>
  }
  return %r, %upper : tensor<8xf64>, i64
}

// Writes into memory of the graph's own become pure, at indices of the loop, too; and the array
// that the loop then carries twice is carried once.
// CHECK-LABEL: func.func @elements(
// CHECK:         %[[F:.*]] = "profuse.fusion_group"(%{{.*}}) {callee = @[[ELEMENTS:fusion_loop0_[0-9]+]]}
// CHECK-NEXT:    return %[[F]]
func.func @elements(%x: tensor<8xf64>) -> tensor<8xf64> {
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %y = "profuse.copy"(%x) : (tensor<8xf64>) -> tensor<8xf64>
  %r = scf.for %i = %one to %eight step %one iter_args(%a = %y) -> (tensor<8xf64>) : i64 {
    %before = "profuse.sub"(%i, %one) : (i64, i64) -> i64
    %v = "profuse.pick"(%a, %before) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %w = "profuse.put_"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %a : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// A choice of two numbers, which the branches of a fallback have become.
// CHECK-LABEL: func.func @choices(
// CHECK-NOT:     scf.for
// CHECK:         %[[F:.*]] = "profuse.fusion_group"(%{{.*}}) {callee = @fusion_loop0_
// CHECK-NEXT:    return %[[F]]
func.func @choices(%x: tensor<8xf64>) -> tensor<8xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %first = "profuse.pick"(%x) {index = 0 : i64} : (tensor<8xf64>) -> tensor<f64>
  %y = "profuse.copy"(%x) : (tensor<8xf64>) -> tensor<8xf64>
  %r = scf.for %i = %zero to %eight step %one iter_args(%a = %y) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%a, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %less = "profuse.lt"(%v, %first) : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %test = "profuse.truth"(%less) : (tensor<i1>) -> i1
    %least = "profuse.if_then_else"(%test, %v, %first) : (i1, tensor<f64>, tensor<f64>) -> tensor<f64>
    %w = "profuse.put_"(%a, %least, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %a : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// A loop with products is one group.
// CHECK-LABEL: func.func @product(
// CHECK-NOT:     scf.for
// CHECK:         "profuse.fusion_group"{{.*}}callee = @fusion_loop0_
func.func @product(%x: tensor<4x4xf64>, %n: i64) -> tensor<4x4xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<4x4xf64>) : i64 {
    %p = "profuse.matmul"(%a, %x) : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
    scf.yield %p : tensor<4x4xf64>
  }
  return %r : tensor<4x4xf64>
}

// A loop around a call on the host stays, and a loop inside of it does not.
// CHECK-LABEL: func.func @host(
// CHECK:         scf.for
// CHECK:           "profuse.host_call"
// CHECK-NOT:       scf.for
// CHECK:           "profuse.fusion_group"{{.*}}callee = @fusion_loop1_
func.func @host(%x: tensor<4x4xf64>, %n: i64) -> tensor<4x4xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<4x4xf64>) : i64 {
    %p = "profuse.host_call"(%a) {function = "numpy.linalg.inv", arguments = "x0"} : (tensor<4x4xf64>) -> tensor<4x4xf64>
    %q = scf.for %k = %zero to %n step %one iter_args(%b = %p) -> (tensor<4x4xf64>) : i64 {
      %e = "profuse.tanh"(%b) : (tensor<4x4xf64>) -> tensor<4x4xf64>
      scf.yield %e : tensor<4x4xf64>
    }
    scf.yield %q : tensor<4x4xf64>
  }
  return %r : tensor<4x4xf64>
}

// What kernels do not have of the ops before a loop stays before the group: here an array whose
// size is known at run time only, which observers have seen.
// CHECK-LABEL: func.func @before(
// CHECK:         %[[FULL:.*]] = "profuse.full"
// CHECK:         "profuse.fusion_group"({{.*}}%[[FULL]]{{.*}}) {callee = @fusion_loop0_
func.func @before(%n: i64) -> tensor<8xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %y = "profuse.full"(%zero, %n) {shape = array<i64: -9223372036854775808>, dtype = f64} : (i64, i64) -> tensor<8xf64>
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %y) -> (tensor<8xf64>) : i64 {
    %e = "profuse.cos"(%a) : (tensor<8xf64>) -> tensor<8xf64>
    scf.yield %e : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}

// Symbolic sizes need `dynamic`.
// CHECK-LABEL: func.func @sizes(
// CHECK:         scf.for
// DYN-LABEL:   func.func @sizes(
// DYN-NOT:       scf.for
// DYN:           "profuse.fusion_group"
func.func @sizes(%x: tensor<?xf64, {dims = ["s0"]}>, %n: i64) -> tensor<?xf64, {dims = ["s0"]}> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<?xf64, {dims = ["s0"]}>) : i64 {
    %e = "profuse.tanh"(%a) : (tensor<?xf64, {dims = ["s0"]}>) -> tensor<?xf64, {dims = ["s0"]}>
    scf.yield %e : tensor<?xf64, {dims = ["s0"]}>
  }
  return %r : tensor<?xf64, {dims = ["s0"]}>
}

// Effects stay in the plan.
// CHECK-LABEL: func.func @effects(
// CHECK:         scf.for
// CHECK:           "profuse.warn"
func.func @effects(%x: tensor<4xf64>, %n: i64) -> tensor<4xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %r = scf.for %t = %zero to %n step %one iter_args(%a = %x) -> (tensor<4xf64>) : i64 {
    "profuse.warn"() {message = "a round"} : () -> ()
    %e = "profuse.tanh"(%a) : (tensor<4xf64>) -> tensor<4xf64>
    scf.yield %e : tensor<4xf64>
  }
  return %r : tensor<4xf64>
}

// A loop that another one alone reads goes into its function: nothing is copied in between. What
// something else reads stays a group of its own.
// CHECK-LABEL: func.func @several(
// CHECK:         %[[ONE:.*]] = "profuse.fusion_group"({{.*}}) {callee = @fusion_loop0_
// CHECK:         %[[TWO:.*]] = "profuse.fusion_group"({{.*}}) {callee = @fusion_loops2_
// CHECK-NOT:     profuse.fusion_group
// CHECK:         return %[[ONE]], %[[TWO]]
// ALONE-LABEL: func.func @several(
// ALONE:         callee = @fusion_loop0_
// ALONE:         callee = @fusion_loop1_
// ALONE:         callee = @fusion_loop2_
func.func @several(%x: tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %eight = "profuse.constant"() {value = 8 : i64} : () -> i64
  %y = "profuse.copy"(%x) : (tensor<8xf64>) -> tensor<8xf64>
  %p = scf.for %i = %zero to %eight step %one iter_args(%a = %y) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%x, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %v, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  %q = scf.for %i = %one to %eight step %one iter_args(%a = %p) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%a, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %d = "profuse.add"(%v, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %d, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  %r = scf.for %i = %one to %eight step %one iter_args(%a = %q) -> (tensor<8xf64>) : i64 {
    %v = "profuse.pick"(%a, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, i64) -> tensor<f64>
    %d = "profuse.mul"(%v, %v) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %w = "profuse.pick_scatter"(%a, %d, %i) {index = -9223372036854775808 : i64} : (tensor<8xf64>, tensor<f64>, i64) -> tensor<8xf64>
    scf.yield %w : tensor<8xf64>
  }
  return %p, %r : tensor<8xf64>, tensor<8xf64>
}

// A number that sizes depend on is known as one: below a bound that the parts ask for, and the same
// as a size where two sizes have to be the same.
// CHECK-LABEL: func.func @numbers(
// CHECK:         "profuse.fusion_group"({{.*}}) {callee = @[[NUMBERS:fusion_loop0_[0-9]+]]}
func.func @numbers(%x: tensor<8xf64>, %n: i64) -> tensor<8xf64> {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %two = "profuse.constant"() {value = 2 : i64} : () -> i64
  %y = "profuse.copy"(%x) : (tensor<8xf64>) -> tensor<8xf64>
  %r = scf.for %i = %zero to %two step %one iter_args(%a = %y) -> (tensor<8xf64>) : i64 {
    %end = "profuse.sub"(%n, %one) : (i64, i64) -> i64
    %inner = "profuse.slice"(%a, %end) {starts = array<i64: 1>, stops = array<i64: -9223372036854775808>} : (tensor<8xf64>, i64) -> !profuse.tensor
    %first = "profuse.slice"(%a, %n) {starts = array<i64: 0>, stops = array<i64: -9223372036854775808>} : (tensor<8xf64>, i64) -> !profuse.tensor
    %sum = "profuse.add"(%first, %x) : (!profuse.tensor, tensor<8xf64>) -> !profuse.tensor
    %b = "profuse.slice_scatter"(%a, %sum) {starts = array<i64: 0>, stops = array<i64: 8>} : (tensor<8xf64>, !profuse.tensor) -> tensor<8xf64>
    %mean = "profuse.sum"(%inner) : (!profuse.tensor) -> tensor<f64>
    %c = "profuse.pick_scatter"(%b, %mean) {index = 0 : i64} : (tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
    scf.yield %c : tensor<8xf64>
  }
  return %r : tensor<8xf64>
}


// A branch that no run has taken, and a loop in it: its values are bare, and typed for the kernel.
// The size that was computed before the branch goes into the kernel as well.
// CHECK-LABEL: func.func @unseen(
// CHECK:         scf.if
// CHECK-NEXT:      %[[U:.*]] = "profuse.fusion_group"(%{{.*}}) {callee = @fusion_loop{{.*}}} : (tensor<4xf64>) -> !profuse.tensor
// CHECK-NEXT:      scf.yield %[[U]] : !profuse.tensor
// CHECK-NOT:     scf.for
func.func @unseen(%x: tensor<4xf64>, %z: !profuse.tensor, %c: i1) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.dim"(%x) {axis = 0 : i64} : (tensor<4xf64>) -> i64
  %r = scf.if %c -> !profuse.tensor {
    %e = "profuse.exp"(%x) : (tensor<4xf64>) -> !profuse.tensor
    %y = "profuse.full"(%zero, %n) {dtype = f64, shape = array<i64: -9223372036854775808>} : (i64, i64) -> !profuse.tensor
    scf.for %i = %zero to %n step %one : i64 {
      %a = "profuse.pick"(%e, %i) {index = -9223372036854775808 : i64} : (!profuse.tensor, i64) -> !profuse.tensor
      %p = "profuse.put_"(%y, %a, %i) {index = -9223372036854775808 : i64} : (!profuse.tensor, !profuse.tensor, i64) -> !profuse.tensor
    }
    scf.yield %y : !profuse.tensor
  } else {
    scf.yield %z : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// CHECK:       func.func private @[[STENCIL]](%[[X:.*]]: tensor<8xf64{{.*}}>, %[[N:.*]]: i64)
// CHECK:         "profuse.copy"(%[[X]])
// CHECK:         %[[UPPER:.*]] = "profuse.sub"(%[[N]], %{{.*}})
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[UPPER]]
// CHECK:           "profuse.slice_scatter"
// CHECK:       func.func private @[[ELEMENTS]]
// CHECK:         scf.for {{.*}} iter_args(%[[A:[a-z0-9]+]] = %{{[a-z0-9]+}}) -> (tensor<8xf64>)
// CHECK:           "profuse.pick_scatter"(%[[A]], %{{.*}}, %{{.*}})
// CHECK-NOT:       "profuse.put_"
// CHECK:       func.func private @[[NUMBERS]](
// CHECK:         "profuse.count"(%{{.*}}) {equals = "8", least = 1 : i64, symbol = "n0"} : (i64) -> i64
