// RUN: profuse-opt %s --pass-pipeline=fold-validation --verify-diagnostics --split-input-file

// expected-error@+1 {{@f is no captured backward run, which takes five lists}}
func.func @f(%inputs: !profuse.list) {
  return
}
