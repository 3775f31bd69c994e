// RUN: profuse-opt %s -p dedupe-device-groups --stats 2>&1 | FileCheck %s
// RUN: profuse-opt %s -p dedupe-device-groups,dedupe-device-groups | FileCheck %s --check-prefix=AGAIN

// Bodies that differ in names of values and of symbols alone share a function, in nested blocks as well (R3.49).
// CHECK-LABEL: dedupe-device-groups
// CHECK:       3 groups-shared
// CHECK-LABEL: func.func @f(
// CHECK:         "profuse.cuda_group"(%{{.*}}) {cache_id = "[[ID:[0-9a-f]{16}]]", callee = @a}
// CHECK:         "profuse.cuda_group"(%{{.*}}) {cache_id = "[[ID]]", callee = @a}
// CHECK:         scf.if
// CHECK:           "profuse.cuda_group"(%{{.*}}) {cache_id = "[[ID]]", callee = @a}
// CHECK-NOT:       cache_id = "[[ID]]"
// CHECK:         "profuse.cuda_group"(%{{.*}}) {cache_id = "{{[0-9a-f]+}}", callee = @rank}
// CHECK-NEXT:    "profuse.cuda_group"(%{{.*}}) {cache_id = "{{[0-9a-f]+}}", callee = @layout}
// CHECK-NEXT:    "profuse.cuda_group"(%{{.*}}) {cache_id = "{{[0-9a-f]+}}", callee = @square}
// CHECK-NEXT:    "profuse.cuda_group"(%{{.*}}) {cache_id = "{{[0-9a-f]+}}", callee = @row}
// CHECK-NEXT:    "profuse.cuda_group"(%{{.*}}) {cache_id = "{{[0-9a-f]+}}", callee = @elsewhere}
// CHECK-NEXT:    "profuse.cuda_group"(%{{.*}}) {cache_id = "{{[0-9a-f]+}}", callee = @apart}
// CHECK-NEXT:    "profuse.cuda_group"(%{{.*}}) {cache_id = "[[ABOVE:[0-9a-f]+]]", callee = @above}
// CHECK-NEXT:    "profuse.cuda_group"(%{{.*}}) {cache_id = "[[ABOVE]]", callee = @above}
// CHECK:       func.func private @a(
// CHECK-NOT:   func.func private @b(
// AGAIN-COUNT-3: callee = @a}
func.func @f(%x: !profuse.tensor, %c: i1) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.cuda_group"(%x) {callee = @a} : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.cuda_group"(%0) {callee = @b} : (!profuse.tensor) -> !profuse.tensor
  %2 = scf.if %c -> !profuse.tensor {
    %3 = "profuse.cuda_group"(%1) {callee = @b} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %3 : !profuse.tensor
  } else {
    scf.yield %1 : !profuse.tensor
  }
  %4 = "profuse.cuda_group"(%2) {callee = @rank} : (!profuse.tensor) -> !profuse.tensor
  %5 = "profuse.cuda_group"(%4) {callee = @layout} : (!profuse.tensor) -> !profuse.tensor
  %6 = "profuse.cuda_group"(%5) {callee = @square} : (!profuse.tensor) -> !profuse.tensor
  %7 = "profuse.cuda_group"(%6) {callee = @row} : (!profuse.tensor) -> !profuse.tensor
  %8 = "profuse.cuda_group"(%7) {callee = @elsewhere} : (!profuse.tensor) -> !profuse.tensor
  %9 = "profuse.cuda_group"(%8, %8) {callee = @apart} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %10 = "profuse.cuda_group"(%8, %9) {callee = @above} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  %11 = "profuse.cuda_group"(%8, %10) {callee = @over} : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %2, %11 : !profuse.tensor, !profuse.tensor
}

func.func private @a(%x: tensor<?x?xf32, {dims = ["a0", "a1"], strides = "contiguous", device = "cpu"}>) -> tensor<?x?xf32, {dims = ["a0", "a1"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<?x?xf32, {dims = ["a0", "a1"], strides = "contiguous", device = "cpu"}>) -> tensor<?x?xf32, {dims = ["a0", "a1"]}>
  return %0 : tensor<?x?xf32, {dims = ["a0", "a1"]}>
}

func.func private @b(%y: tensor<?x?xf32, {dims = ["k", "b7"], strides = "contiguous", device = "cpu"}>) -> tensor<?x?xf32, {dims = ["k", "b7"]}> {
  %z = "profuse.tanh"(%y) : (tensor<?x?xf32, {dims = ["k", "b7"], strides = "contiguous", device = "cpu"}>) -> tensor<?x?xf32, {dims = ["k", "b7"]}>
  return %z : tensor<?x?xf32, {dims = ["k", "b7"]}>
}

func.func private @rank(%x: tensor<?xf32, {dims = ["a0"], strides = "contiguous", device = "cpu"}>) -> tensor<?xf32, {dims = ["a0"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<?xf32, {dims = ["a0"], strides = "contiguous", device = "cpu"}>) -> tensor<?xf32, {dims = ["a0"]}>
  return %0 : tensor<?xf32, {dims = ["a0"]}>
}

func.func private @layout(%x: tensor<?x?xf32, {dims = ["a0", "a1"], device = "cpu"}>) -> tensor<?x?xf32, {dims = ["a0", "a1"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<?x?xf32, {dims = ["a0", "a1"], device = "cpu"}>) -> tensor<?x?xf32, {dims = ["a0", "a1"]}>
  return %0 : tensor<?x?xf32, {dims = ["a0", "a1"]}>
}

func.func private @square(%x: tensor<?x?xf32, {dims = ["a0", "a0"], strides = "contiguous", device = "cpu"}>) -> tensor<?x?xf32, {dims = ["a0", "a0"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<?x?xf32, {dims = ["a0", "a0"], strides = "contiguous", device = "cpu"}>) -> tensor<?x?xf32, {dims = ["a0", "a0"]}>
  return %0 : tensor<?x?xf32, {dims = ["a0", "a0"]}>
}

func.func private @row(%x: tensor<1x?xf32, {dims = ["1", "a0"], strides = "contiguous", device = "cpu"}>) -> tensor<1x?xf32, {dims = ["1", "a0"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<1x?xf32, {dims = ["1", "a0"], strides = "contiguous", device = "cpu"}>) -> tensor<1x?xf32, {dims = ["1", "a0"]}>
  return %0 : tensor<1x?xf32, {dims = ["1", "a0"]}>
}

func.func private @elsewhere(%x: tensor<?x?xf32, {dims = ["a0", "a1"], strides = "contiguous", device = "cuda:1"}>) -> tensor<?x?xf32, {dims = ["a0", "a1"], device = "cuda:1"}> {
  %0 = "profuse.tanh"(%x) : (tensor<?x?xf32, {dims = ["a0", "a1"], strides = "contiguous", device = "cuda:1"}>) -> tensor<?x?xf32, {dims = ["a0", "a1"], device = "cuda:1"}>
  return %0 : tensor<?x?xf32, {dims = ["a0", "a1"], device = "cuda:1"}>
}

// What is known of sizes matters, and not the names by which it is known.
func.func private @apart(%x: tensor<?xf32, {dims = ["s0_0"], strides = "contiguous", device = "cpu"}>, %y: tensor<?xf32, {dims = ["s1_0"], strides = "contiguous", device = "cpu"}>) -> tensor<?xf32, {dims = ["s0_0"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<?xf32, {dims = ["s0_0"], strides = "contiguous", device = "cpu"}>) -> tensor<?xf32, {dims = ["s0_0"]}>
  return %0 : tensor<?xf32, {dims = ["s0_0"]}>
}

func.func private @above(%x: tensor<?xf32, {dims = ["s0_0"], strides = "contiguous", device = "cpu"}>, %y: tensor<?xf32, {dims = ["s1_0__0_s0_0"], strides = "contiguous", device = "cpu"}>) -> tensor<?xf32, {dims = ["s0_0"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<?xf32, {dims = ["s0_0"], strides = "contiguous", device = "cpu"}>) -> tensor<?xf32, {dims = ["s0_0"]}>
  return %0 : tensor<?xf32, {dims = ["s0_0"]}>
}

func.func private @over(%x: tensor<?xf32, {dims = ["s3_1"], strides = "contiguous", device = "cpu"}>, %y: tensor<?xf32, {dims = ["s2_0__0_s3_1"], strides = "contiguous", device = "cpu"}>) -> tensor<?xf32, {dims = ["s3_1"]}> {
  %0 = "profuse.tanh"(%x) : (tensor<?xf32, {dims = ["s3_1"], strides = "contiguous", device = "cpu"}>) -> tensor<?xf32, {dims = ["s3_1"]}>
  return %0 : tensor<?xf32, {dims = ["s3_1"]}>
}
