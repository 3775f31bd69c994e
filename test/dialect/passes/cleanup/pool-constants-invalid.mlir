// RUN: not profuse-opt %s --pass-pipeline='pool-constants{all=true}' 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=pool-constants --verify-diagnostics

// OPTION: profuse-opt: error: pass pool-constants has no option 'all'
func.func @f(%x: !profuse.tensor) {
  // expected-error@+1 {{'profuse.constant' needs attribute 'value'}}
  %0 = "profuse.constant"() : () -> i64
  return
}
