// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// maxRecompiling is how long compiling a policy may have taken if a request is to wait
// for it: a hundred times what most take.
const maxRecompiling = 50 * time.Millisecond

var _ policy.Resting = (*lazyProgram)(nil)

// lazyProgram is the program of a stored policy. What it is compiled to takes twelve
// times the memory of all else, in hundreds of pieces that each garbage collection
// visits: a policy that nobody asks keeps nothing of it, and compiles
// again when a request comes. That makes the same of the same spec.
type lazyProgram struct {
	compiler *compiler
	spec     []byte // encoded: one piece instead of dozens
	// failed says that it could not be compiled at all when that was reported.
	failed bool

	// slow says that no request shall wait for it to be compiled again.
	slow      atomic.Bool
	compiled  atomic.Pointer[program] // nil at rest
	used      atomic.Bool             // since the last Rest
	compiling sync.Mutex
}

// newLazyProgram compiles spec, which must not be modified any more, and returns the
// faults of its expressions.
func newLazyProgram(c *compiler, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) (*lazyProgram, field.ErrorList) {
	_, _ = c.planner() // what all policies share is not compiled again; compile tells of an error
	l := &lazyProgram{compiler: c}
	compiled, errs := l.compile(spec)
	l.failed = compiled.failure != nil
	l.compiled.Store(compiled)
	var err error
	if l.spec, err = spec.Marshal(); err != nil {
		l.slow.Store(true) // it could not be read again
	}
	return l, errs
}

// compile notes when it takes long. Each time counts: beside a policy with the same
// expressions the first one takes less.
func (l *lazyProgram) compile(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) (*program, field.ErrorList) {
	begin := l.compiler.tracing.clock.Now()
	compiled, errs := l.compiler.compile(spec)
	if l.compiler.tracing.clock.Since(begin) > maxRecompiling {
		l.slow.Store(true)
	}
	return compiled, errs
}

// recompile compiles what was compiled before. Its faults are known, and in the
// program.
func (l *lazyProgram) recompile() *program {
	spec := &admissionregistrationv1.ValidatingAdmissionPolicySpec{}
	if err := spec.Unmarshal(l.spec); err != nil {
		err = fmt.Errorf("reading the policy again: %w", err)
		return &program{spec: spec, failure: err, unusable: err}
	}
	compiled, _ := l.compile(spec)
	return compiled
}

// Evaluate implements policy.Program.
func (l *lazyProgram) Evaluate(ctx context.Context, in policy.Input) []verdict.Finding {
	if err := ctx.Err(); err != nil {
		return []verdict.Finding{{Kind: verdict.Error, Message: err.Error()}}
	}
	return l.program().evaluate(ctx, in)
}

func (l *lazyProgram) program() *program {
	if !l.used.Load() {
		l.used.Store(true)
	}
	if compiled := l.compiled.Load(); compiled != nil {
		return compiled
	}
	l.compiling.Lock()
	defer l.compiling.Unlock()
	if compiled := l.compiled.Load(); compiled != nil {
		return compiled
	}
	compiled := l.recompile()
	if compiled.failure == nil || l.failed {
		l.compiled.Store(compiled) // and otherwise the next request tries again
	}
	return compiled
}

// Rest implements policy.Resting.
func (l *lazyProgram) Rest() {
	if l.used.Swap(false) || l.slow.Load() {
		return
	}
	if compiled := l.compiled.Swap(nil); compiled != nil {
		l.compiler.tracing.ready.Remove(compiled)
	}
}
