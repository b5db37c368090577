// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

const (
	// maxWritten bounds what all policies together may write into the object of a
	// request, as JSON. An API server takes no object of more than 3 MiB; policies that
	// put what is there already in many places could make gigabytes of it.
	maxWritten = 16 << 20
	// maxLevels is how deep it may be nested, which is what decoders of JSON take.
	maxLevels = 10_000
)

// errTooLarge is an error of the policy with which that is too much.
var errTooLarge = fmt.Errorf("the policies would write more than %d MiB into the object, or nest it deeper than %d levels", maxWritten>>20, maxLevels)

// reinvoked is the message of what a policy changes when it is asked again.
const reinvoked = "asked again, since a later policy has changed the object"

// Mutate lets the policies of the given kinds that mutate change the request, one after
// the other in their order, and records what they find; no kinds means all. Each sees
// what the former have made of the object, and so does Judge afterwards. It fails as
// Judge does.
//
// After Reinvoke it asks only those whose object others have changed meanwhile, and
// records what they change then, and errors.
func (q *Question) Mutate(ctx context.Context, kinds []string, recorder *verdict.Recorder) error {
	key := ""
	if len(kinds) > 0 {
		key = kinds[0]
	}
	if q.again && q.left[key] == q.request.Object {
		return nil
	}
	if q.request.Time.IsZero() && !q.exempt {
		q.request = q.request.At(q.clock.Now())
	}
	r := run{Question: q, recorder: recorder, mutating: true}
	if err := r.all(ctx, kinds); err != nil {
		return err
	}
	if q.left == nil {
		q.left = map[string]*unstructured.Unstructured{}
	}
	q.left[key] = q.request.Object
	return nil
}

// Reinvoke says whether policies that have been asked by Mutate must be asked once
// more, since later ones have changed the object; Mutate asks those then. It happens
// once, as kube-apiserver does with the webhooks whose reinvocationPolicy is IfNeeded.
func (q *Question) Reinvoke() bool {
	if q.again {
		return false
	}
	for _, object := range q.left {
		if object != q.request.Object {
			q.again = true
		}
	}
	return q.again
}

// Object returns what Mutate has made of the object of the request, or nil when it has
// changed nothing.
func (q *Question) Object() *unstructured.Unstructured {
	if q.request.Object == q.incoming {
		return nil
	}
	return q.request.Object
}

// Policies returns the policies that the question is asked of, or nil for a request that
// is exempt.
func (q *Question) Policies() *policy.Set { return q.set }

// Unit returns the policy of that name that the question is asked of, or nil.
func (q *Question) Unit(id policy.ID) *policy.Unit {
	if q.set == nil {
		return nil
	}
	return q.set.Policy(id)
}

// changed records what a policy that mutates has found, and takes over the object that
// it has made.
func (r *run) changed(origin *verdict.Origin, p *applied, took time.Duration, findings []verdict.Finding) error {
	object, written := r.request.Object, r.written
	for i := range findings {
		made := findings[i].Object
		if findings[i].Kind != verdict.Mutated || made == nil {
			continue
		}
		added, ok := patch.Added(contentOf(object), made.Object, maxWritten-written, maxLevels)
		if !ok {
			return r.record(origin, took, []verdict.Finding{{Kind: verdict.Error, Message: errTooLarge.Error()}})
		}
		object, written = made, written+added
	}
	if object != r.request.Object {
		r.become(r.request.WithObject(object))
	}
	r.written = written
	if r.concealed == "" {
		r.concealed = concealedBy(p.Policy, findings)
	}
	if r.again {
		findings = whenReinvoked(findings)
	}
	return r.record(origin, took, findings)
}

// contentOf returns nil for no object.
func contentOf(object *unstructured.Unstructured) any {
	if object == nil {
		return nil
	}
	return object.Object
}

// become makes req the request that the following policies are asked about.
func (r *run) become(req *request.Request) {
	before := r.subject
	r.request = req
	r.subject = r.subjectOf(req)
	r.moved = r.moved || !r.subject.FoundLike(&before)
}

// whenReinvoked leaves out what has been said before.
func whenReinvoked(findings []verdict.Finding) []verdict.Finding {
	told := make([]verdict.Finding, 0, len(findings))
	for _, finding := range findings {
		switch finding.Kind {
		case verdict.NotMatched, verdict.Skip, verdict.Pass:
			continue
		case verdict.Mutated:
			finding.Message = reinvoked
		case verdict.Undecided, verdict.Fail, verdict.Error, verdict.Misconfigured, verdict.Refused, verdict.Annotation:
		}
		told = append(told, finding)
	}
	return slices.Clip(told)
}
