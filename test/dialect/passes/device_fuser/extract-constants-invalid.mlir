// RUN: not profuse-opt %s --pass-pipeline='extract-constants{all=true}' --split-input-file 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: profuse-opt %s --pass-pipeline=extract-constants --verify-diagnostics --split-input-file

// OPTION: profuse-opt: error: pass extract-constants has no option 'all'
func.func @other_type(%n: i64) -> i64 {
  // expected-error@+1 {{a value of kind bool is of type i1, not i64}}
  %0 = "profuse.profile_value"(%n) {site = 0 : i64, profiled_bool = true} : (i64) -> i64
  return %0 : i64
}

// -----

func.func @no_kind(%n: i64) -> i64 {
  // expected-error@+1 {{kind 'number' is none of int_list, bool_list, reduction_size, view_size, bool, int, string}}
  %0 = "profuse.profile_value"(%n) {site = 0 : i64, kind = "number"} : (i64) -> i64
  return %0 : i64
}

// -----

func.func @failed(%n: i64) -> i64 {
  // expected-error@+1 {{has failed, and profiled_int}}
  %0 = "profuse.profile_value"(%n) {site = 0 : i64, failed = true, profiled_int = 1 : i64} : (i64) -> i64
  return %0 : i64
}
