// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin makes k8s.io/apiserver admission plugins of the dialects, one
// of each, and runs them as one registered chain. It translates between the
// terms of that interface and those of pkg/admission/chain, and knows neither
// policy languages nor HTTP.
package plugin

import (
	"context"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

var (
	_ admission.MutationInterface   = (*Plugin)(nil)
	_ admission.ValidationInterface = (*Plugin)(nil)
)

// Plugin judges requests with the policies of one dialect. It is safe for
// concurrent use.
type Plugin struct {
	kinds []string
	chain *chain.Chain
	view  func() cluster.View
}

// Name is the name under which the plugin of a dialect is registered.
func Name(dialect policy.Dialect) string { return "Portcullis/" + dialect.Name() }

// Register registers a plugin for each dialect and returns their names, in the
// order in which they are to judge. The policies are those of judge; a plugin
// that is given a foreign request reads the cluster through what view returns.
func Register(plugins *admission.Plugins, dialects []policy.Dialect, judge *chain.Chain, view func() cluster.View) []string {
	names := make([]string, len(dialects))
	for i, dialect := range dialects {
		names[i] = Name(dialect)
		kinds := dialect.Kinds()
		plugins.Register(names[i], func(io.Reader) (admission.Interface, error) {
			return &Plugin{kinds: kinds, chain: judge, view: view}, nil
		})
	}
	return names
}

// Handles implements admission.Interface: policies say for themselves which
// operations they are about.
func (p *Plugin) Handles(admission.Operation) bool { return true }

// Validate implements admission.ValidationInterface. For a request of our doors
// it records what the policies find in the verdict.Recorder of the context, and
// returns an error only when they cannot be heard at all. For that of another
// API server it decides alone: it passes on warnings and audit annotations and
// returns the denial, as the plugins of kube-apiserver do.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if own, ok := a.(*attributes); ok {
		if recorder := verdict.RecorderFrom(ctx); recorder != nil {
			return own.question.Judge(ctx, p.kinds, recorder)
		}
	}
	req, err := fromAttributes(a, o)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	v, err := p.chain.Run(ctx, chain.Trial{Request: req, View: p.view()}, p.kinds...)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	publish(ctx, a, v)
	return denial(a, req, v)
}

// Admit implements admission.MutationInterface. For a request of our doors it lets the
// policies of the dialect change the request and records what they find, as Validate
// does. In another API server it changes the object of a, or denies.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if own, ok := a.(*attributes); ok {
		if recorder := verdict.RecorderFrom(ctx); recorder != nil {
			return own.question.Mutate(ctx, p.kinds, recorder)
		}
	}
	req, err := fromAttributes(a, o)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	question, err := p.chain.Try(chain.Trial{Request: req, View: p.view()})
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	recorder := &verdict.Recorder{}
	if err := question.Mutate(ctx, p.kinds, recorder); err != nil {
		return admission.NewForbidden(a, err)
	}
	v := recorder.Fold()
	publish(ctx, a, v)
	if err := denial(a, req, v); err != nil {
		return err
	}
	if err := replaceObject(a, o, question.Object()); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// denial returns the error that a verdict leads to, or nil.
func denial(a admission.Attributes, req *request.Request, v verdict.Verdict) error {
	status := v.ForbiddenStatus(a.GetResource().GroupResource(), req.DisplayName())
	if status == nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: *status}
}

// publish tells the client and the audit log what the verdict says to them.
func publish(ctx context.Context, a admission.Attributes, v verdict.Verdict) {
	for _, text := range v.Warnings {
		warning.AddWarning(ctx, "", text)
	}
	for key, value := range v.AuditAnnotations {
		if err := a.AddAnnotation(key, value); err != nil {
			klog.FromContext(ctx).Error(err, "An audit annotation is left out", "key", key)
		}
	}
}
