// RUN: profuse-opt %s -p partition-device-groups --verify-each --stats 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=STATS --input-file=%t
// RUN: profuse-opt %s -p 'partition-device-groups{horizontal=false}' | FileCheck %s --check-prefix=ALONG
// RUN: profuse-opt %s -p 'partition-device-groups{single=true}' | FileCheck %s --check-prefix=SINGLE
// RUN: profuse-opt %s -p 'partition-device-groups{host=true}' | FileCheck %s --check-prefix=HOST
// RUN: profuse-opt %s -p 'partition-device-groups{max-values=4}' | FileCheck %s --check-prefix=SMALL
// RUN: profuse-opt %s -p 'partition-device-groups{chip=sm_60}' | FileCheck %s --check-prefix=OLD

!t = tensor<4x8xf32, {device = "cuda:0"}>
!v = tensor<4xf32, {device = "cuda:0"}>
!h = tensor<4x8xf32, {device = "cpu"}>

// STATS: partition-device-groups: 11 groups, 31 ops-fused, 1 results-dropped, 1 size-queries-replaced

// R3.14: a single scan joins f, h and l; that g reads f is seen in the next round.
// R3.18, R3.22: results are those of the consumer, and then those of what was merged into it.
// CHECK-LABEL: func.func @rounds(
// CHECK-SAME:    %[[X:[a-z0-9]+]]
// CHECK-NEXT:    %[[G:.*]]:2 = "profuse.cuda_group"(%[[X]]) {callee = @[[ROUNDS:[a-z_0-9]+]]} :
// CHECK-NEXT:    return %[[G]]#0, %[[G]]#1 :
// ALONG-LABEL: func.func @rounds(
// ALONG:         "profuse.cuda_group"
// ALONG-NEXT:    return
func.func @rounds(%x: !t) -> (!t, !t) {
  %f = "profuse.tanh"(%x) : (!t) -> !t
  %g = "profuse.exp"(%f) : (!t) -> !t
  %h = "profuse.neg"(%f) : (!t) -> !t
  %l = "profuse.abs"(%h) : (!t) -> !t
  return %g, %l : !t, !t
}

// R3.16: f(a, a + b), with both.
// CHECK-LABEL: func.func @both(
// CHECK-NEXT:    "profuse.cuda_group"
// CHECK-NEXT:    return
// SMALL-LABEL: func.func @both(
// SMALL-NEXT:    %[[A:.*]] = "profuse.tanh"
// SMALL-NEXT:    %[[S:.*]] = "profuse.add"(%[[A]]
// SMALL-NEXT:    "profuse.mul"(%[[A]], %[[S]])
func.func @both(%x: !t, %b: !t) -> !t {
  %a = "profuse.tanh"(%x) : (!t) -> !t
  %s = "profuse.add"(%a, %b) : (!t, !t) -> !t
  %f = "profuse.mul"(%a, %s) : (!t, !t) -> !t
  return %f : !t
}

// R3.17: what is read before a write and what is read after it stay two groups.
// CHECK-LABEL: func.func @write_between(
// CHECK-SAME:    %[[X:[a-z0-9]+]]
// CHECK-NEXT:    %[[G:.*]]:2 = "profuse.cuda_group"(%[[X]])
// CHECK-NEXT:    "profuse.add_"(%[[G]]#{{[01]}}, %[[X]])
// CHECK-NEXT:    %[[H:.*]] = "profuse.cuda_group"(%[[G]]#{{[01]}}, %[[G]]#{{[01]}})
// CHECK-NEXT:    return %[[H]]
func.func @write_between(%x: !t) -> !t {
  %own = "profuse.neg"(%x) : (!t) -> !t
  %before = "profuse.tanh"(%own) : (!t) -> !t
  %w = "profuse.add_"(%own, %x) : (!t, !t) -> !t
  %after = "profuse.exp"(%own) : (!t) -> !t
  %r = "profuse.mul"(%before, %after) : (!t, !t) -> !t
  return %r : !t
}

// R3.19: w, which the body reads first, and then y and z; numbers come last, and x, which is made
// inside, is none. Constants are copied.
// CHECK-LABEL: func.func @operands(
// CHECK-SAME:    %[[N:[a-z0-9]+]]: f64, %[[Z:[a-z0-9]+]]: {{.*}}, %[[Y:[a-z0-9]+]]: {{.*}}, %[[W:[a-z0-9]+]]:
// CHECK:         "profuse.cuda_group"(%[[W]], %[[Y]], %[[Z]], %[[N]]) {callee = @[[OPERANDS:[a-z_0-9]+]]} : {{.*}}, f64)
// CHECK-NEXT:    return
func.func @operands(%n: f64, %z: !t, %y: !t, %w: !t) -> !t {
  %x = "profuse.tanh"(%w) : (!t) -> !t
  %two = "profuse.constant"() {value = 2.0 : f64} : () -> f64
  %a = "profuse.mul"(%x, %n) : (!t, f64) -> !t
  %b = "profuse.add"(%a, %y) : (!t, !t) -> !t
  %c = "profuse.mul"(%b, %two) : (!t, f64) -> !t
  %d = "profuse.add"(%c, %z) : (!t, !t) -> !t
  return %d : !t
}

// R3.19: the value that an observer has seen is an operand, the conditional constant is inside; the
// tensor stands for its size.
// CHECK-LABEL: func.func @conditional(
// CHECK-SAME:    %[[X:[a-z0-9]+]]: {{.*}}, %[[AXES:[a-z0-9]+]]: !profuse.ints
// CHECK-NEXT:    %[[SEEN:.*]] = "profuse.profile_value"(%[[AXES]])
// CHECK-NEXT:    "profuse.cuda_group"(%[[X]], %[[SEEN]]) {callee = @[[CONDITIONAL:[a-z_0-9]+]]} : {{.*}}, !profuse.ints) ->
// CHECK-NEXT:    return
func.func @conditional(%x: !t, %axes: !profuse.ints) -> !v {
  %a = "profuse.tanh"(%x) : (!t) -> !t
  %seen = "profuse.profile_value"(%axes) {site = 0 : i64} : (!profuse.ints) -> !profuse.ints
  %k = "profuse.constant"(%seen) {value = array<i64: 1>} : (!profuse.ints) -> !profuse.ints
  %s = "profuse.late"(%a, %k) {op = "sum", names = ["axes"]} : (!t, !profuse.ints) -> !v
  %n = "profuse.dim"(%a) {axis = 1 : i64} : (!t) -> i64
  %r = "profuse.div"(%s, %n) : (!v, i64) -> !v
  return %r : !v
}

// R3.20: one op is a group with the switch on.
// CHECK-LABEL: func.func @single(
// CHECK-NEXT:    "profuse.relu"
// SINGLE-LABEL: func.func @single(
// SINGLE-NEXT:   "profuse.cuda_group"
func.func @single(%x: !t) -> !t {
  %y = "profuse.relu"(%x) : (!t) -> !t
  return %y : !t
}

// R3.21: two readers of x.
// CHECK-LABEL: func.func @horizontal(
// CHECK-NEXT:    %[[G:.*]]:2 = "profuse.cuda_group"
// CHECK-NEXT:    return %[[G]]#1, %[[G]]#0
// ALONG-LABEL: func.func @horizontal(
// ALONG-NEXT:    "profuse.tanh"
// ALONG-NEXT:    "profuse.exp"
func.func @horizontal(%x: !t) -> (!t, !t) {
  %a = "profuse.tanh"(%x) : (!t) -> !t
  %b = "profuse.exp"(%x) : (!t) -> !t
  return %a, %b : !t, !t
}

// R3.15: ops of the host are the general fuser's, unless they are asked for.
// CHECK-LABEL: func.func @host(
// CHECK-NEXT:    "profuse.tanh"
// HOST-LABEL:  func.func @host(
// HOST-NEXT:     "profuse.cuda_group"
func.func @host(%x: !h) -> !h {
  %a = "profuse.tanh"(%x) : (!h) -> !h
  %b = "profuse.exp"(%a) : (!h) -> !h
  return %b : !h
}

// R3.15: an old device computes elementwise ops in groups.
// CHECK-LABEL: func.func @reduction(
// CHECK-NEXT:    "profuse.cuda_group"
// CHECK-NEXT:    return
// OLD-LABEL:   func.func @reduction(
// OLD-NEXT:      "profuse.cuda_group"
// OLD-NEXT:      "profuse.sum"
func.func @reduction(%x: !t) -> !v {
  %a = "profuse.tanh"(%x) : (!t) -> !t
  %b = "profuse.exp"(%a) : (!t) -> !t
  %s = "profuse.sum"(%b) {axes = array<i64: 1>} : (!t) -> !v
  return %s : !v
}

// R3.14, R3.33: what is there for its sizes alone is no result; blocks inside have groups.
// CHECK-LABEL: func.func @sizes(
// CHECK-SAME:    %[[X:[a-z0-9]+]]
// CHECK-NEXT:    %[[G:.*]] = "profuse.cuda_group"(%[[X]]) {{.*}} -> tensor<4xf32
// CHECK-NEXT:    %[[S:.*]] = "profuse.sizes"(%[[X]])
// CHECK-NEXT:    return %[[G]], %[[S]]
func.func @sizes(%x: !t) -> (!v, !profuse.ints) {
  %a = "profuse.tanh"(%x) : (!t) -> !t
  %n = "profuse.sizes"(%a) : (!t) -> !profuse.ints
  %s = "profuse.sum"(%a) {axes = array<i64: 1>} : (!t) -> !v
  return %s, %n : !v, !profuse.ints
}

// CHECK-LABEL: func.func @nested(
// CHECK:         scf.if
// CHECK-NEXT:      %[[G:.*]] = "profuse.cuda_group"
// CHECK-NEXT:      scf.yield %[[G]]
func.func @nested(%x: !t, %c: i1) -> !t {
  %r = scf.if %c -> (!t) {
    %a = "profuse.tanh"(%x) : (!t) -> !t
    %b = "profuse.exp"(%a) : (!t) -> !t
    scf.yield %b : !t
  } else {
    scf.yield %x : !t
  }
  return %r : !t
}

// R3.14: what groups compute twice is computed once: clean-up of each.
// CHECK-LABEL: func.func @twice(
// CHECK:         {callee = @[[TWICE:[a-z_0-9]+]]}
func.func @twice(%x: !t) -> !t {
  %a = "profuse.tanh"(%x) : (!t) -> !t
  %b = "profuse.tanh"(%x) : (!t) -> !t
  %c = "profuse.add"(%a, %b) : (!t, !t) -> !t
  return %c : !t
}

// CHECK:       func.func private @[[ROUNDS]](%[[X:.*]]: tensor
// CHECK-NEXT:    %[[F:.*]] = "profuse.tanh"(%[[X]])
// CHECK-NEXT:    %[[H:.*]] = "profuse.neg"(%[[F]])
// CHECK-NEXT:    %[[L:.*]] = "profuse.abs"(%[[H]])
// CHECK-NEXT:    %[[G:.*]] = "profuse.exp"(%[[F]])
// CHECK-NEXT:    return %[[G]], %[[L]]

// CHECK:       func.func private @[[OPERANDS]](%[[W:.*]]: tensor{{.*}}, %[[Y:.*]]: tensor{{.*}}, %[[Z:.*]]: tensor{{.*}}, %[[N:.*]]: f64)
// CHECK-NEXT:    %[[TWO:.*]] = "profuse.constant"() {value = 2.0
// CHECK-NEXT:    %[[T:.*]] = "profuse.tanh"(%[[W]])
// CHECK-NEXT:    "profuse.mul"(%[[T]], %[[N]])
// CHECK-NEXT:    "profuse.add"(%{{.*}}, %[[Y]])
// CHECK-NEXT:    "profuse.mul"(%{{.*}}, %[[TWO]])
// CHECK-NEXT:    "profuse.add"(%{{.*}}, %[[Z]])

// CHECK:       func.func private @[[CONDITIONAL]](%[[X:.*]]: tensor{{.*}}, %[[SEEN:.*]]: !profuse.ints)
// CHECK-NEXT:    %[[A:.*]] = "profuse.tanh"(%[[X]])
// CHECK-NEXT:    %[[K:.*]] = "profuse.constant"(%[[SEEN]]) {value = array<i64: 1>}
// CHECK-NEXT:    %[[S:.*]] = "profuse.late"(%[[A]], %[[K]])
// CHECK-NEXT:    %[[N:.*]] = "profuse.dim"(%[[A]])
// CHECK-NEXT:    "profuse.div"(%[[S]], %[[N]])

// CHECK:       func.func private @[[TWICE]](
// CHECK-NEXT:    %[[A:.*]] = "profuse.tanh"
// CHECK-NEXT:    "profuse.add"(%[[A]], %[[A]])
// CHECK-NEXT:    return
