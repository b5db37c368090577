// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"context"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// ours is the chain as the doors run it, and as another API server does.
type ours struct {
	world      *world
	dialect    policy.Dialect
	current    atomic.Pointer[policy.Set]
	units      []*policy.Unit // that are in force
	registered *plugin.Registered
	alone      admission.ValidationInterface
}

func newOurs(w *world, dialects []policy.Dialect) (*ours, error) {
	o := &ours{world: w, dialect: dialects[0]}
	judge := chain.New(o.current.Load, clock.RealClock{})
	registered, err := plugin.NewRegistered(dialects, judge, nil)
	if err != nil {
		return nil, err
	}
	plugins := admission.NewPlugins()
	names := plugin.Register(plugins, dialects, judge, func() cluster.View { return w })
	alone, err := plugins.InitPlugin(names[0], nil, admission.PluginInitializers{})
	if err != nil {
		return nil, err
	}
	validating, ok := alone.(admission.ValidationInterface)
	if !ok {
		return nil, fmt.Errorf("%T does not validate", alone)
	}
	o.registered, o.alone = registered, validating
	return o, nil
}

// enforce puts the policies of a scenario in force, and nothing else. Faults in
// them are not looked at: a stored policy is compiled whatever is wrong with it.
func (o *ours) enforce(ctx context.Context, s *scenario) error {
	var units []*policy.Unit
	compile := func(object runtime.Object) error {
		unit, errs := o.dialect.Compile(ctx, object)
		if unit == nil {
			return errs.ToAggregate()
		}
		units = append(units, unit)
		return nil
	}
	for _, binding := range s.bindings { // in any order
		err := compile(&policyapi.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: binding.Name}, Spec: *binding.Spec.DeepCopy(),
		})
		if err != nil {
			return err
		}
	}
	for _, stored := range s.policies {
		err := compile(&policyapi.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: stored.Name}, Spec: *stored.Spec.DeepCopy(),
		})
		if err != nil {
			return err
		}
	}
	o.units = units
	o.current.Store((&policy.Set{}).Edit(nil, units))
	return nil
}

// rest lets the programs put away what they are able to make again.
func (o *ours) rest() {
	for _, unit := range o.units {
		if unit.Policy == nil {
			continue
		}
		if program, ok := unit.Policy.Program.(policy.Resting); ok {
			program.Rest() // has been used
			program.Rest()
		}
	}
}

// request is what the review door makes of a review of q.
func (q *question) request() (*request.Request, error) {
	review, err := q.review()
	if err != nil {
		return nil, err
	}
	fields := request.Fields{
		UID: review.UID, Kind: schema.GroupVersionKind(review.Kind), Resource: schema.GroupVersionResource(review.Resource),
		SubResource: review.SubResource, Name: review.Name, Namespace: review.Namespace,
		Operation: admission.Operation(review.Operation), User: request.User(&review.UserInfo), DryRun: *review.DryRun,
	}
	err = fields.SetOriginal((*schema.GroupVersionKind)(review.RequestKind),
		(*schema.GroupVersionResource)(review.RequestResource), review.RequestSubResource)
	if err != nil {
		return nil, err
	}
	if fields.Object, err = request.Object(&review.Object); err != nil {
		return nil, err
	}
	if fields.OldObject, err = request.Object(&review.OldObject); err != nil {
		return nil, err
	}
	if fields.Options, err = request.Object(&review.Options); err != nil {
		return nil, err
	}
	return request.New(fields), nil
}

// answer is that of the doors.
func (o *ours) answer(ctx context.Context, req *request.Request) answer {
	return fromVerdict(req)(o.registered.Run(ctx, req, o.world))
}

// explained is the answer of the preview door, which asks for explanations.
func (o *ours) explained(ctx context.Context, req *request.Request) answer {
	explain := &policy.Explain{MayRead: func(context.Context, verdict.ParamRef) bool { return true }}
	return fromVerdict(req)(o.registered.Try(ctx, chain.Trial{Request: req, View: o.world, Explain: explain}))
}

func fromVerdict(req *request.Request) func(verdict.Verdict, error) answer {
	return func(v verdict.Verdict, err error) answer {
		if err != nil {
			return answer{Failed: err.Error()}
		}
		a := answer{Allowed: v.Allowed, Warnings: v.Warnings, Annotations: v.AuditAnnotations}
		if status := v.ForbiddenStatus(req.RequestResource.GroupResource(), req.DisplayName()); status != nil {
			a.status(status)
		}
		return a
	}
}

// embedded is the answer of the plugin in another API server.
func (o *ours) embedded(ctx context.Context, q *question) answer {
	var heard warnings
	attributes := &recordedAttributes{Attributes: q.attributes()}
	err := o.alone.Validate(warning.WithWarningRecorder(ctx, &heard), attributes, o.world.objectInterfaces())
	return newAnswer(err, heard.texts, attributes.annotations)
}
