// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// TestGuardsMissNothing: an index finds each of the criteria whose kinds select an object,
// and not all others.
func TestGuardsMissNothing(t *testing.T) {
	const policies = 200
	wanted, others := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		kinds := make([][]match.Kind, policies)
		namespaces := make([]string, policies)
		var items []match.Item[int]
		for i := range policies {
			for range 1 + r.IntN(2) {
				kinds[i] = append(kinds[i], someKind(r))
			}
			if r.IntN(5) == 0 {
				namespaces[i] = someText(r)
			}
			items = append(items, match.Item[int]{Name: fmt.Sprintf("%03d", i), Value: i, Criteria: match.CompileKinds(namespaces[i], kinds[i])})
		}
		index := (*match.Index[int])(nil).Edit(nil, items)
		req := someRequest(r)
		subject := match.NewSubject(req, newWorld())
		found := index.Candidates(subject, nil)
		for i := range policies {
			selected := namespaces[i] == "" || namespaces[i] == req.Namespace
			selected = selected && slices.ContainsFunc(kinds[i], func(k match.Kind) bool { return selects(&k, req) })
			switch has := slices.Contains(found, i); {
			case selected && !has:
				t.Fatalf("seed %d: %+v in %q is not found for %+v", seed, kinds[i], namespaces[i], req.Object.Object)
			case selected:
				wanted++
			case has:
				others++
			}
		}
		subject = match.NewSubject(req, newWorld())
		subject.ByKindAlone()
		if all := index.Candidates(subject, nil); len(all) != policies {
			t.Fatalf("seed %d: %d are about the kind, want all", seed, len(all))
		}
	}
	kept := 300*policies - wanted - others
	t.Logf("%d are found that select the object, and %d others; %d are kept out", wanted, others, kept)
	if wanted < 1_000 || kept < 20_000 {
		t.Error("that proves little")
	}
}

func someText(r *rand.Rand) string {
	return fmt.Sprintf("%s-%d", []string{"web", "store", "a"}[r.IntN(3)], r.IntN(20))
}

func someKind(r *rand.Rand) match.Kind {
	kind := match.Kind{Group: "*", Version: "*", Kind: "Pod"}
	texts := func() []string {
		var all []string
		for range 1 + r.IntN(3) {
			text := someText(r)
			if r.IntN(4) == 0 {
				text = text[:r.IntN(len(text)+1)] + "*"
			}
			all = append(all, text)
		}
		return all
	}
	switch r.IntN(4) {
	case 0:
		kind.Names = texts()
	case 1:
		kind.Namespaces = texts()
	case 2:
		kind.Labels = map[string]string{"app": someText(r)}
	default:
		kind.Names, kind.Labels = texts(), map[string]string{"app": someText(r), "tier": someText(r)}
	}
	return kind
}

func someRequest(r *rand.Rand) *request.Request {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	namespace := someText(r)
	if r.IntN(4) > 0 {
		object.SetName(someText(r))
	} else {
		object.SetGenerateName(someText(r))
	}
	object.SetNamespace(namespace)
	object.SetLabels(map[string]string{"app": someText(r), "tier": someText(r), "more": "x"})
	fields := request.Fields{
		Operation: admission.Create, Namespace: namespace, Object: object,
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
	}
	if r.IntN(4) == 0 {
		fields.Operation, fields.Object, fields.OldObject = admission.Delete, nil, object
	}
	return request.New(fields)
}

// selects is what guards must not contradict.
func selects(k *match.Kind, req *request.Request) bool {
	object := req.Object
	if object == nil {
		object = req.OldObject
	}
	one := func(patterns []string, text string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
			matched, err := path.Match(pattern, text)
			return err == nil && matched
		})
	}
	name := object.GetName()
	if name == "" {
		name = object.GetGenerateName()
	}
	labels := object.GetLabels()
	for key, value := range k.Labels {
		if labels[key] != value {
			return false
		}
	}
	return one(k.Names, name) && one(k.Namespaces, object.GetNamespace())
}

// TestGuardsOfUnknownObjects: what is not known keeps nothing out.
func TestGuardsOfUnknownObjects(t *testing.T) {
	kind := match.Kind{Group: "*", Version: "*", Kind: "Pod", Names: []string{"other"}, Namespaces: []string{"other"}, Labels: map[string]string{"a": "b"}}
	index := (*match.Index[string])(nil).Edit(nil, []match.Item[string]{{Name: "p", Criteria: match.CompileKinds("other", []match.Kind{kind}), Value: "p"}})
	for name, object := range map[string]*unstructured.Unstructured{"none": nil, "no content": {}} {
		fields := request.Fields{Operation: admission.Create, Object: object, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}
		if found := index.Candidates(match.NewSubject(request.New(fields), newWorld()), nil); len(found) != 1 {
			t.Errorf("%s: got %v", name, found)
		}
	}
	lies := &unstructured.Unstructured{Object: map[string]any{"kind": "Namespace", "metadata": map[string]any{"name": "other", "labels": map[string]any{"a": "b"}}}}
	fields := request.Fields{Operation: admission.Create, Object: lies, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "other"}
	if found := index.Candidates(match.NewSubject(request.New(fields), newWorld()), nil); len(found) != 1 {
		t.Errorf("a Namespace does not lie in itself: got %v", found)
	}
}
