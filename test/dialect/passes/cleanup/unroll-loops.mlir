// R1.47: counted loops of at most 32 ops; below 64 constant trips fully, else by 8 and a remainder.
// RUN: profuse-opt %s --pass-pipeline=unroll-loops,fold,dce --verify-each | FileCheck %s
// RUN: profuse-opt %s --pass-pipeline=unroll-loops,unroll-loops,fold,dce --verify-each | FileCheck %s
// RUN: profuse-opt %s --pass-pipeline='unroll-loops{max-body=1 factor=2}' | FileCheck %s --check-prefix=SMALL
// RUN: profuse-opt %s --pass-pipeline='unroll-loops{max-ops=7}' | FileCheck %s --check-prefix=OPS

// CHECK-LABEL: func.func @constant(
// CHECK-NOT:     scf.for
// CHECK:         "profuse.add"(%{{.*}}, %{{.*}})
// CHECK-NEXT:    "profuse.tanh"
// CHECK-NEXT:    %[[J:.*]] = "profuse.constant"() {value = 3 : i64}
// CHECK-NEXT:    "profuse.add"(%{{.*}}, %[[J]])
// CHECK-NEXT:    %[[R:.*]] = "profuse.tanh"
// CHECK-NEXT:    return %[[R]]
// SMALL-LABEL: func.func @constant(
// SMALL:         scf.for
func.func @constant(%x: !profuse.tensor) -> !profuse.tensor {
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %four = "profuse.constant"() {value = 4 : i64} : () -> i64
  %two = "profuse.constant"() {value = 2 : i64} : () -> i64
  %r = scf.for %i = %one to %four step %two iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %b = "profuse.add"(%a, %i) : (!profuse.tensor, i64) -> !profuse.tensor
    %c = "profuse.tanh"(%b) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %c : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// CHECK-LABEL: func.func @counted(
// CHECK-SAME:    %[[X:[^:]*]]: !profuse.tensor, %[[N:[^:]*]]: i64)
// CHECK:         %[[D:.*]] = "profuse.sub"(%[[N]], %[[LO:[0-9]+]])
// CHECK:         %[[Q:.*]] = "profuse.floor_div"(%[[D]], %[[WIDE:[0-9]+]])
// CHECK:         %[[K:.*]] = "profuse.maximum"(%[[Q]],
// CHECK:         %[[S:.*]] = "profuse.mul"(%[[K]], %[[WIDE]])
// CHECK:         %[[M:.*]] = "profuse.add"(%[[LO]], %[[S]])
// CHECK:         %[[A:.*]] = scf.for %[[I:.*]] = %[[LO]] to %[[M]] step %[[WIDE]] iter_args(%{{.*}} = %[[X]])
// CHECK-COUNT-8:   "profuse.mul"
// CHECK-NOT:       "profuse.mul"
// CHECK:         } {profuse.unrolled}
// CHECK:         scf.for %{{.*}} = %[[M]] to %[[N]] step %{{.*}} iter_args(%{{.*}} = %[[A]])
// CHECK-NEXT:      "profuse.mul"
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    } {profuse.unrolled}
// OPS-LABEL:   func.func @constant(
// OPS-NOT:       scf.for
// OPS-LABEL:   func.func @counted(
// OPS-COUNT-1:   scf.for
// OPS-NOT:       scf.for
// OPS-LABEL:   func.func @many(
// SMALL-LABEL: func.func @counted(
// SMALL:         scf.for
// SMALL-COUNT-2:   "profuse.mul"
// SMALL:         } {profuse.unrolled}
func.func @counted(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %three = "profuse.constant"() {value = 3 : i64} : () -> i64
  %lo = "profuse.constant"() {value = -1 : i64} : () -> i64
  %r = scf.for %i = %lo to %n step %three iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %b = "profuse.mul"(%a, %i) : (!profuse.tensor, i64) -> !profuse.tensor
    scf.yield %b : !profuse.tensor
  }
  return %r : !profuse.tensor
}

// 64 trips are too many for full unrolling; a step that is not known, for any.
// CHECK-LABEL: func.func @many(
// CHECK:         scf.for
// CHECK-COUNT-8:   "profuse.tanh"
// CHECK:         scf.for
// CHECK-LABEL: func.func @step(
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      "profuse.tanh"
// CHECK-NEXT:      scf.yield
func.func @many(%x: !profuse.tensor) -> !profuse.tensor {
  %zero = "profuse.constant"() {value = 0 : i64} : () -> i64
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %n = "profuse.constant"() {value = 64 : i64} : () -> i64
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %c = "profuse.tanh"(%a) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %c : !profuse.tensor
  }
  return %r : !profuse.tensor
}
func.func @step(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
  %r = scf.for %i = %n to %n step %n iter_args(%a = %x) -> (!profuse.tensor) : i64 {
    %c = "profuse.tanh"(%a) : (!profuse.tensor) -> !profuse.tensor
    scf.yield %c : !profuse.tensor
  }
  return %r : !profuse.tensor
}
