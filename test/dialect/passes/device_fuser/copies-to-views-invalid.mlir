// RUN: profuse-opt %s -p copies-to-views --stats --verify-each 2>&1 | FileCheck %s
// RUN: not profuse-opt %s --pass-pipeline='copies-to-views{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION

// OPTION: profuse-opt: error: pass copies-to-views has no option 'all'

// A copy that somebody has written as one has memory of its own, and keeps it.
// CHECK-NOT: copies-reverted
// CHECK-LABEL: func.func @copied(
// CHECK-NEXT:    "profuse.reshape_copy"(%{{.*}}) {shape = array<i64: 24>}
func.func @copied(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.reshape_copy"(%x) {shape = array<i64: 24>} : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
