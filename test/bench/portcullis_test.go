// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
)

// portcullis is our engine, put together as the server does it.
type portcullis struct {
	policies   *catalog.Catalog
	registered *plugin.Registered
	view       cluster.View
	object     *unstructured.Unstructured
	compiling  time.Duration // CPU time
	heap       uint64
}

func startPortcullis(t testing.TB, w workload) *portcullis {
	t.Helper()
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dialects := dialect.All()
	p := &portcullis{policies: catalog.New(dialects), view: view, object: deployment(t)}
	if p.registered, err = plugin.NewRegistered(dialects, chain.New(p.policies.Current, clock.RealClock{}), nil); err != nil {
		t.Fatal(err)
	}
	before := heap()
	changes := w.changes()
	runtime.GC() // has nothing to do with compiling
	begin := cpu(t)
	if err := p.policies.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	p.compiling = cpu(t) - begin
	if w.InUse {
		p.wake(t, w)
	}
	p.heap = heap() - before
	if v := p.verdict(t, p.object); !v.Allowed || len(v.Evaluations) != 3*w.matching()*w.Bindings {
		t.Fatalf("portcullis denies what all policies allow: %+v", v)
	}
	forbidden := p.object.DeepCopy()
	forbidden.SetLabels(map[string]string{"forbidden-0": "yes"})
	if p.verdict(t, forbidden).Allowed {
		t.Fatal("portcullis allows what the first policy denies")
	}
	return p
}

// changes are all objects of a workload, as written.
func (w workload) changes() []catalog.Change {
	var changes []catalog.Change
	for i := range w.Policies {
		stored := w.policy(i)
		changes = append(changes, catalog.Change{
			ID:     policy.ID{Kind: policyKind, Name: stored.Name},
			Object: &policyapi.ValidatingAdmissionPolicy{ObjectMeta: stored.ObjectMeta, Spec: stored.Spec},
		})
		for j := range w.Bindings {
			stored := w.binding(j, i)
			changes = append(changes, catalog.Change{
				ID:     policy.ID{Kind: bindingKind, Name: stored.Name},
				Object: &policyapi.ValidatingAdmissionPolicyBinding{ObjectMeta: stored.ObjectMeta, Spec: stored.Spec},
			})
		}
	}
	return changes
}

// wake asks every policy that is not about the request.
func (p *portcullis) wake(t testing.TB, w workload) {
	t.Helper()
	asked := map[schema.GroupResource]bool{}
	for i := w.matching(); i < w.Policies; i++ {
		resource := elsewhere(i)
		if asked[resource] {
			continue
		}
		asked[resource] = true
		v := p.verdictOn(t, p.object, resource.WithVersion("v1"), schema.GroupVersionKind{Group: resource.Group, Version: "v1", Kind: "Thing"})
		if len(v.Evaluations) == 0 {
			t.Fatalf("no policy is about %s", resource)
		}
	}
}

// waking is how much longer a request takes when all policies that match it are at
// rest: the median of several.
func (p *portcullis) waking(t testing.TB) time.Duration {
	t.Helper()
	times := make([]time.Duration, 21)
	for i := range times {
		p.policies.Rest() // they have been used
		p.policies.Rest()
		runtime.GC() // nothing is found that another policy has left
		begin := time.Now()
		p.judge(t)
		times[i] = time.Since(begin)
		begin = time.Now()
		p.judge(t)
		times[i] -= time.Since(begin)
	}
	slices.Sort(times)
	return times[len(times)/2]
}

func (p *portcullis) verdict(t testing.TB, object *unstructured.Unstructured) verdict.Verdict {
	return p.verdictOn(t, object, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
}

func (p *portcullis) verdictOn(t testing.TB, object *unstructured.Unstructured, resource schema.GroupVersionResource, kind schema.GroupVersionKind) verdict.Verdict {
	req := request.New(request.Fields{
		UID:       "4711",
		Kind:      kind,
		Resource:  resource,
		Name:      object.GetName(),
		Namespace: metav1.NamespaceDefault,
		Operation: admission.Create,
		User:      client(),
		Object:    object,
	})
	v, err := p.registered.Run(t.Context(), req, p.view)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (p *portcullis) judge(t testing.TB) {
	if !p.verdict(t, p.object).Allowed {
		t.Fatal("denied")
	}
}
