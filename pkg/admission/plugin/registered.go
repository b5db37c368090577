// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"io"

	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// Observer hears what became of the requests that were judged for real. It must
// be safe for concurrent use and must not keep or change the verdict.
type Observer interface {
	// Judged tells of a verdict.
	Judged(v *verdict.Verdict)
	// Failed tells of a request that could not be judged.
	Failed(err error)
}

// Registered runs the plugins of all dialects as one chain of admission
// plugins, hears them all, and decides once. It is safe for concurrent use.
type Registered struct {
	chain    *chain.Chain
	plugins  plugins
	observer Observer
	// convergence is nil where nobody looks at what has been mutated.
	convergence *Convergence
}

// plugins are a chain of plugins with its two phases: first those that mutate change
// the request, then those that validate judge what has become of it.
type plugins interface {
	admission.MutationInterface
	admission.ValidationInterface
}

// phase asks the plugins of one phase, or of both.
type phase func(ctx context.Context, question *chain.Question, req *request.Request) (verdict.Verdict, error)

// NewRegistered registers the plugins of the dialects, in the given order, in a
// chain of their own. observer may be nil.
func NewRegistered(dialects []policy.Dialect, judge *chain.Chain, observer Observer) (*Registered, error) {
	available := admission.NewPlugins()
	// Requests of our doors carry their view.
	names := Register(available, dialects, judge, func() cluster.View { return nil })
	registered, err := available.NewFromPlugins(names, unconfigured{}, admission.PluginInitializers{}, nil)
	if err != nil {
		return nil, fmt.Errorf("build the chain of admission plugins: %w", err)
	}
	both, ok := registered.(plugins)
	if !ok {
		return nil, fmt.Errorf("build the chain of admission plugins: %T does not both mutate and validate", registered)
	}
	return &Registered{chain: judge, plugins: both, observer: observer}, nil
}

// Run judges req with the stored policies. An error means that the request must
// not be admitted; it is one of those of chain.Chain.Run.
func (r *Registered) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	return r.observed(ctx, req, view, r.validate)
}

// Mutate lets the stored policies that mutate have their say about req. It fails as
// Run does.
func (r *Registered) Mutate(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	return r.observed(ctx, req, view, func(ctx context.Context, question *chain.Question, req *request.Request) (verdict.Verdict, error) {
		answer, err := r.mutate(ctx, question, req)
		if err == nil {
			r.convergence.offer(question, req, view, &answer)
		}
		return answer, err
	})
}

func (r *Registered) observed(ctx context.Context, req *request.Request, view cluster.View, ask phase) (verdict.Verdict, error) {
	answer, err := r.run(ctx, chain.Trial{Request: req, View: view}, ask)
	if r.observer != nil {
		if err != nil {
			r.observer.Failed(err)
		} else {
			r.observer.Judged(&answer)
		}
	}
	return answer, err
}

// Try judges a trial as enforcement would: first the policies that mutate change the
// object, then the others judge what has become of it. Nobody but the caller hears of
// it. It fails as Run does.
func (r *Registered) Try(ctx context.Context, trial chain.Trial) (verdict.Verdict, error) {
	answer, err := r.run(ctx, trial, r.both)
	if err != nil || trial.Explain == nil || answer.Object == nil {
		return answer, err
	}
	answer.Diverging, err = r.diverging(ctx, trial, answer.Object)
	return answer, err
}

func (r *Registered) run(ctx context.Context, trial chain.Trial, ask phase) (verdict.Verdict, error) {
	question, err := r.chain.Try(trial)
	if err != nil {
		return verdict.Verdict{}, err
	}
	return ask(ctx, question, trial.Request)
}

// validate asks the plugins that judge.
func (r *Registered) validate(ctx context.Context, question *chain.Question, req *request.Request) (verdict.Verdict, error) {
	recorder := &verdict.Recorder{}
	if err := r.plugins.Validate(verdict.WithRecorder(ctx, recorder), newAttributes(req, question), nil); err != nil {
		return verdict.Verdict{}, err
	}
	return recorder.Fold(), nil
}

// mutate asks the plugins that mutate, and those that come before one that has changed
// the object once more.
func (r *Registered) mutate(ctx context.Context, question *chain.Question, req *request.Request) (verdict.Verdict, error) {
	recorder := &verdict.Recorder{}
	ctx, attributes := verdict.WithRecorder(ctx, recorder), newAttributes(req, question)
	if err := r.plugins.Admit(ctx, attributes, nil); err != nil {
		return verdict.Verdict{}, err
	}
	if question.Reinvoke() {
		if err := r.plugins.Admit(ctx, attributes, nil); err != nil {
			return verdict.Verdict{}, err
		}
	}
	answer := recorder.Fold()
	answer.Object = question.Object()
	return answer, nil
}

// both runs one phase after the other.
func (r *Registered) both(ctx context.Context, question *chain.Question, req *request.Request) (verdict.Verdict, error) {
	mutated, err := r.mutate(ctx, question, req)
	if err != nil || !mutated.Allowed {
		return mutated, err
	}
	judged, err := r.validate(ctx, question, req)
	if err != nil {
		return verdict.Verdict{}, err
	}
	return verdict.Join(mutated, judged), nil
}

// unconfigured gives no plugin a configuration: policies are API objects.
type unconfigured struct{}

func (unconfigured) ConfigFor(string) (io.Reader, error) { return nil, nil } //nolint:nilnil // the interface asks for it
