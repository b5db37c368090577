// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// upstream is kube-apiserver's own matcher.
type upstream struct {
	matcher    *matching.Matcher
	interfaces admission.ObjectInterfaces
}

func newUpstream(w *world) upstream {
	return upstream{
		matcher:    matching.NewMatcher(lister{world: w}, fake.NewClientset()),
		interfaces: w.objectInterfaces(),
	}
}

type upstreamCriteria struct {
	resources *admissionregistrationv1.MatchResources
}

func (c upstreamCriteria) GetParsedNamespaceSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(c.resources.NamespaceSelector)
}

func (c upstreamCriteria) GetParsedObjectSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(c.resources.ObjectSelector)
}

func (c upstreamCriteria) GetMatchResources() admissionregistrationv1.MatchResources {
	return *c.resources
}

func (u upstream) match(req *request.Request, resources *admissionregistrationv1.MatchResources) outcome {
	var object, oldObject runtime.Object
	switch {
	case req.Object == nil:
	case req.Operation == admission.Connect && req.Object.Object["metadata"] == nil:
		object = &corev1.PodExecOptions{} // as the API server has it: without metadata
	default:
		object = req.Object
	}
	if req.OldObject != nil {
		oldObject = req.OldObject
	}
	attributes := admission.NewAttributesRecord(object, oldObject, req.RequestKind, req.Namespace, req.Name,
		req.RequestResource, req.RequestSubResource, req.Operation, nil, req.DryRun, req.User)
	matched, resource, kind, err := u.matcher.Matches(attributes, u.interfaces, upstreamCriteria{resources})
	return newOutcome(cluster.Equivalent{Resource: resource, Kind: kind}, matched, err)
}

// outcome is what a matcher answers, in a form that can be compared.
type outcome struct {
	under   cluster.Equivalent
	matched bool
	err     string
}

func newOutcome(under cluster.Equivalent, matched bool, err error) outcome {
	o := outcome{under: under, matched: matched}
	if err != nil {
		o.err = fmt.Sprintf("%T: %v", err, err)
	}
	return o
}

// compare matches with our criteria and with upstream's matcher.
func compare(t *testing.T, w *world, u upstream, req *request.Request, resources *admissionregistrationv1.MatchResources) (outcome, error) {
	t.Helper()
	want := u.match(req, resources)
	got := newOutcome(match.Compile(resources).Matches(t.Context(), match.NewSubject(req, w)))
	if got != want {
		return got, fmt.Errorf("%s\ngot:      %+v\nupstream: %+v", describe(req, resources), got, want)
	}
	return got, nil
}

func describe(req *request.Request, resources *admissionregistrationv1.MatchResources) string {
	text, err := yaml.Marshal(map[string]any{"request": req.Fields, "criteria": resources})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// sort names what an outcome is an example of.
func (o outcome) sort(req *request.Request) string {
	for _, text := range []string{
		`namespaces "missing" not found`, "does not answer", "unknown kind", "not a valid label selector operator",
		"a valid label key must", "does not implement",
	} {
		if strings.Contains(o.err, text) {
			return text
		}
	}
	switch {
	case o.err != "":
		return o.err
	case !o.matched:
		return "no match"
	case o.under.Resource != req.RequestResource:
		return "equivalent"
	default:
		return "match"
	}
}

func TestMatchesAsUpstream(t *testing.T) {
	w := newWorld()
	u := newUpstream(w)
	seen := map[string]int{}
	for seed := range uint64(100_000) {
		g := fromSeed(seed)
		req, resources := g.request(), g.resources()
		got, err := compare(t, w, u, req, resources)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		seen[got.sort(req)]++
	}
	t.Log(seen)
	for _, sort := range []string{
		"match", "no match", "equivalent", "unknown kind", "does not answer", "does not implement",
		"not a valid label selector operator", `namespaces "missing" not found`, "a valid label key must",
	} {
		if seen[sort] < 20 {
			t.Errorf("only %d outcomes %q: the generator proves little", seen[sort], sort)
		}
	}
}

func TestCandidatesMissNothing(t *testing.T) {
	w := newWorld()
	for seed := range uint64(1_000) {
		g := fromSeed(seed)
		if err := checkIndex(t, g, w); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// checkIndex edits an index at random and compares what it finds with a scan of
// all criteria.
func checkIndex(t *testing.T, g generator, w *world) error {
	t.Helper()
	installed := map[string]*match.Criteria{}
	var ix *match.Index[string]
	for range 4 {
		var remove []string
		var add []match.Item[string]
		for range g.draw(4) {
			name := fmt.Sprint("policy-", g.draw(20))
			remove = append(remove, name)
			delete(installed, name)
		}
		for range g.draw(12) {
			name, criteria := fmt.Sprint("policy-", g.draw(20)), match.Compile(g.resources())
			if g.draw(20) == 0 {
				criteria = pick(g, nil, match.Compile(nil), &match.Criteria{})
			}
			installed[name] = criteria
			add = append(add, match.Item[string]{Name: name, Criteria: criteria, Value: name})
		}
		ix = ix.Edit(remove, add)
		if ix.Len() != len(installed) {
			return fmt.Errorf("index has %d items, want %d", ix.Len(), len(installed))
		}
		for range 8 {
			if err := checkCandidates(t, ix, g.request(), w, installed); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkCandidates(t *testing.T, ix *match.Index[string], req *request.Request, w *world, installed map[string]*match.Criteria) error {
	t.Helper()
	candidates := ix.Candidates(match.NewSubject(req, w), nil)
	if !slices.IsSorted(candidates) || len(slices.Compact(slices.Clone(candidates))) != len(candidates) {
		return fmt.Errorf("candidates are not in order, each once: %v", candidates)
	}
	subject := match.NewSubject(req, w)
	for name, criteria := range installed {
		_, matched, err := criteria.Matches(t.Context(), subject)
		if (matched || err != nil) && !slices.Contains(candidates, name) {
			return fmt.Errorf("%s is not among the candidates %v: matched %v, error %v", name, candidates, matched, err)
		}
	}
	for _, name := range candidates {
		if _, ok := installed[name]; !ok {
			return fmt.Errorf("candidate %s is not installed", name)
		}
	}
	return nil
}

func FuzzMatch(f *testing.F) {
	for seed := range uint64(8) {
		data := make([]byte, 400)
		g := fromSeed(seed)
		for i := range data {
			data[i] = byte(g.draw(256))
		}
		f.Add(data)
	}
	w := newWorld()
	u := newUpstream(w)
	f.Fuzz(func(t *testing.T, data []byte) {
		g := fromBytes(data)
		if _, err := compare(t, w, u, g.request(), g.resources()); err != nil {
			t.Fatal(err)
		}
		if err := checkIndex(t, g, w); err != nil {
			t.Fatal(err)
		}
	})
}
