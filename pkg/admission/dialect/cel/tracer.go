// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"sync"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// maxTracers bounds the policies that are kept ready to be explained again; one
// request explains fewer of usual size. Such a policy needs about twice the memory
// of another.
const maxTracers = 128

// tracing makes tracers. It is safe for concurrent use.
type tracing struct {
	// clock measures what explanations take, nothing else; it is the real one
	// unless a test sets another.
	clock clock.PassiveClock
	// ready has the tracers of the policies that several requests have explained
	// (*tracer by *program). Candidates are compiled for one request: they push
	// nothing out, and their tracers go with the request.
	ready *lru.Cache
	// bare are the environments of policies without variables.
	bare, bareWithParams func() (*cel.Env, error)
}

func newTracing(base func() *environment.EnvSet) *tracing {
	bare := func(params bool) func() (*cel.Env, error) {
		return sync.OnceValues(func() (*cel.Env, error) { return declare(base().StoredExpressionsEnv(), params) })
	}
	return &tracing{
		clock: clock.RealClock{}, ready: lru.New(maxTracers),
		bare: bare(false), bareWithParams: bare(true),
	}
}

// declare adds the variables that upstream declares for admission; see
// createEnvForOpts in k8s.io/apiserver/pkg/admission/plugin/cel.
func declare(base *cel.Env, params bool) (*cel.Env, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	provider := apiservercel.NewDeclTypeProvider(request, namespace)
	provider.SetRecognizeKeywordAsFieldName(true)
	options, err := provider.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	options = append(options,
		cel.Variable(plugincel.ObjectVarName, cel.DynType),
		cel.Variable(plugincel.OldObjectVarName, cel.DynType),
		cel.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		cel.Variable(plugincel.RequestVarName, request.CelType()),
		cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
		cel.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	if params {
		options = append(options, cel.Variable(plugincel.ParamsVarName, cel.DynType))
	}
	return base.Extend(options...)
}

// tracer returns that of a policy, for one request. It fails only where the
// environment cannot be built.
func (t *tracing) tracer(p *program) (*tracer, error) {
	if ready, ok := t.ready.Get(p); ok {
		if ready, ok := ready.(*tracer); ok {
			return ready, nil
		}
	}
	env, err := t.environment(p)
	if err != nil {
		return nil, err
	}
	made := newTracer(env, p.spec)
	if p.explained.Swap(true) {
		t.ready.Add(p, made)
	}
	return made, nil
}

func (t *tracing) environment(p *program) (*cel.Env, error) {
	params := p.spec.ParamKind != nil
	switch {
	case p.variables != nil:
		return declare(p.variables, params)
	case params:
		return t.bareWithParams()
	}
	return t.bare()
}

// tracer holds the expressions of one policy in a form that tells what their
// parts were. It decides nothing: findings come from upstream's evaluators, which
// do not keep what they see. It is safe for concurrent use.
type tracer struct {
	env         *cel.Env
	expressions map[string]*traced // by their text: all are of one environment
}

func newTracer(env *cel.Env, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) *tracer {
	t := &tracer{env: env, expressions: map[string]*traced{}}
	for source := range expressionsOf(spec) {
		if t.expressions[source] == nil {
			t.expressions[source] = &traced{source: source}
		}
	}
	return t
}

// traced is one expression, compiled when it is first explained.
type traced struct {
	source string

	once    sync.Once
	plain   cel.Program // nil when it does not compile
	seeing  cel.Program // the same, and keeps what it sees
	leaves  []leaf
	tooLong int
	reads   []path // everything that it is computed from
}

// compile returns false when the expression does not compile.
func (e *traced) compile(env *cel.Env) bool {
	e.once.Do(func() {
		checked, issues := env.Compile(e.source)
		if issues.Err() != nil {
			return
		}
		frequency := cel.InterruptCheckFrequency(celconfig.CheckFrequency)
		plain, err := env.Program(checked, frequency)
		if err != nil {
			return
		}
		// A program that keeps what it sees does not count its cost, and so has no
		// limit (cel-go v0.29): it takes two.
		seeing, err := env.Program(checked, frequency, cel.EvalOptions(cel.OptTrackState))
		if err != nil {
			return
		}
		e.leaves, e.tooLong = leavesOf(checked.NativeRep(), e.source)
		e.reads = readsOf(checked.NativeRep().Expr())
		e.plain, e.seeing = plain, seeing
	})
	return e.plain != nil
}
