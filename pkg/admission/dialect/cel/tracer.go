// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// maxTracers bounds the policies that are kept ready to be explained again; one
// request explains fewer of usual size. Such a policy needs about twice the memory
// of another.
const maxTracers = 128

// tracing makes tracers. It is safe for concurrent use.
type tracing struct {
	compiler *compiler
	// clock measures what explanations take, nothing else; it is the real one
	// unless a test sets another.
	clock clock.PassiveClock
	// ready has the tracers of the policies that several requests have explained
	// (*tracer by *program). Candidates are compiled for one request: they push
	// nothing out, and their tracers go with the request.
	ready *lru.Cache
}

func newTracing(c *compiler) *tracing {
	return &tracing{compiler: c, clock: clock.RealClock{}, ready: lru.New(maxTracers)}
}

// tracer returns that of a policy, for one request.
func (t *tracing) tracer(p *program) *tracer {
	if ready, ok := t.ready.Get(p); ok {
		if ready, ok := ready.(*tracer); ok {
			return ready
		}
	}
	made := newTracer(t.compiler, p)
	if p.explained.Swap(true) {
		t.ready.Add(p, made)
	}
	return made
}

// tracer holds the expressions of one policy in a form that tells what their
// parts were. It decides nothing: findings come from upstream's evaluators, which
// do not keep what they see. It is safe for concurrent use.
type tracer struct {
	expressions map[string]*traced // by their text: all see the same
}

func newTracer(c *compiler, p *program) *tracer {
	t := &tracer{expressions: map[string]*traced{}}
	for source := range expressionsOf(p.spec) {
		if t.expressions[source] == nil {
			t.expressions[source] = &traced{source: source, compiler: c, program: p}
		}
	}
	return t
}

// traced is one expression, compiled when it is first explained.
type traced struct {
	source   string
	compiler *compiler
	program  *program

	once    sync.Once
	plain   cel.Program // nil when it does not compile
	seeing  cel.Program // the same, and keeps what it sees
	leaves  []leaf
	tooLong int
	reads   []path // everything that it is computed from
}

// compile returns false when the expression does not compile.
func (e *traced) compile() bool {
	e.once.Do(func() {
		planner, err := e.compiler.planner()
		if err != nil {
			return
		}
		checked := e.check()
		if checked == nil {
			return
		}
		plain, err := planner.tracked(checked)
		if err != nil {
			return
		}
		// A program that keeps what it sees does not count its cost, and so has no
		// limit (cel-go v0.29): it takes two.
		seeing, err := planner.tracked(checked, cel.EvalOptions(cel.OptTrackState))
		if err != nil {
			return
		}
		e.leaves, e.tooLong = leavesOf(checked, e.source)
		e.reads = readsOf(checked.Expr())
		e.plain, e.seeing = plain, seeing
	})
	return e.plain != nil
}

// check returns nil when the expression does not compile with all variables of its
// policy and an authorizer declared.
func (e *traced) check() *celast.AST {
	workspace := e.compiler.workspaces.take()
	variables := e.program.variables.list
	for i := range variables {
		var output *cel.Type
		if variables[i].expression != nil {
			output = variables[i].output
		}
		workspace.define(variables[i].name, output)
	}
	env, err := workspace.environment(declarations{HasParams: e.program.spec.ParamKind != nil, HasAuthorizer: true})
	if err != nil {
		return nil
	}
	checked, issues := env.Compile(e.source)
	e.compiler.workspaces.put(workspace) // not after a panic
	if issues.Err() != nil {
		return nil
	}
	return checked.NativeRep()
}
