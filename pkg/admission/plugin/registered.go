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
	plugins  admission.ValidationInterface
	observer Observer
}

// NewRegistered registers the plugins of the dialects, in the given order, in a
// chain of their own. observer may be nil.
func NewRegistered(dialects []policy.Dialect, judge *chain.Chain, observer Observer) (*Registered, error) {
	plugins := admission.NewPlugins()
	// Requests of our doors carry their view.
	names := Register(plugins, dialects, judge, func() cluster.View { return nil })
	registered, err := plugins.NewFromPlugins(names, unconfigured{}, admission.PluginInitializers{}, nil)
	if err != nil {
		return nil, fmt.Errorf("build the chain of admission plugins: %w", err)
	}
	validating, ok := registered.(admission.ValidationInterface)
	if !ok {
		return nil, fmt.Errorf("build the chain of admission plugins: %T does not validate", registered)
	}
	return &Registered{chain: judge, plugins: validating, observer: observer}, nil
}

// Run judges req with the stored policies. An error means that the request must
// not be admitted; it is one of those of chain.Chain.Run.
func (r *Registered) Run(ctx context.Context, req *request.Request, view cluster.View) (verdict.Verdict, error) {
	answer, err := r.run(ctx, chain.Trial{Request: req, View: view})
	if r.observer != nil {
		if err != nil {
			r.observer.Failed(err)
		} else {
			r.observer.Judged(&answer)
		}
	}
	return answer, err
}

// Try judges a trial. Nobody but the caller hears of it. It fails as Run does.
func (r *Registered) Try(ctx context.Context, trial chain.Trial) (verdict.Verdict, error) {
	return r.run(ctx, trial)
}

func (r *Registered) run(ctx context.Context, trial chain.Trial) (verdict.Verdict, error) {
	question, err := r.chain.Try(trial)
	if err != nil {
		return verdict.Verdict{}, err
	}
	recorder := &verdict.Recorder{}
	ctx = verdict.WithRecorder(ctx, recorder)
	if err := r.plugins.Validate(ctx, newAttributes(trial.Request, question), nil); err != nil {
		return verdict.Verdict{}, err
	}
	return recorder.Fold(), nil
}

// unconfigured gives no plugin a configuration: policies are API objects.
type unconfigured struct{}

func (unconfigured) ConfigFor(string) (io.Reader, error) { return nil, nil } //nolint:nilnil // the interface asks for it
