// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/match"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

func item(name string, resources *admissionregistrationv1.MatchResources) match.Item[string] {
	return match.Item[string]{Name: name, Criteria: match.Compile(resources), Value: name}
}

func candidates(ix *match.Index[string], fields request.Fields) string {
	return strings.Join(ix.Candidates(match.NewSubject(request.New(fields), newWorld()), nil), " ")
}

func TestCandidates(t *testing.T) {
	exactly := func(r *admissionregistrationv1.MatchResources) {
		exact := admissionregistrationv1.Exact
		r.MatchPolicy = &exact
	}
	ix := (*match.Index[string])(nil).Edit(nil, []match.Item[string]{
		item("z-everything", nil),
		item("no-rules", &admissionregistrationv1.MatchResources{}),
		item("pods", resources("", "v1", "pods")),
		item("pods-and-subresources", resources("", "v1", "pods/*")),
		item("all-main-resources", resources("*", "*", "*")),
		item("all-resources", resources("*", "*", "*/*")),
		item("all-scales", resources("*", "*", "*/scale")),
		item("apps", resources("apps", "*", "*")),
		item("deployments", resources("apps", "v1", "deployments")),
		item("deployments-exactly", resources("apps", "v1", "deployments", exactly)),
		item("scales-exactly", resources("apps", "v1", "deployments/scale", exactly)),
	})
	scale := create("apps", "v1", "deployments", "Scale", "prod")
	scale.RequestSubResource = "scale"
	update := create("apps", "v1", "deployments", "Deployment", "prod")
	update.Operation = admission.Update
	for name, test := range map[string]struct {
		request request.Fields
		want    string
	}{
		"a resource": {
			create("", "v1", "pods", "Pod", "prod"),
			"all-main-resources all-resources no-rules pods pods-and-subresources z-everything",
		},
		"a resource that no rule names": {
			create("", "v1", "nodes", "Node", ""),
			"all-main-resources all-resources no-rules z-everything",
		},
		"a subresource": {scale, "all-resources all-scales no-rules scales-exactly z-everything"},
		"an equivalent resource": {
			create("extensions", "v1beta1", "deployments", "Deployment", "prod"),
			"all-main-resources all-resources apps deployments no-rules z-everything",
		},
		"an operation that no rule names": {update, "no-rules z-everything"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := candidates(ix, test.request); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestCandidatesAppends(t *testing.T) {
	ix := (&match.Index[string]{}).Edit(nil, []match.Item[string]{item("b", nil)})
	got := ix.Candidates(match.NewSubject(request.New(create("", "v1", "pods", "Pod", "prod")), newWorld()), []string{"c"})
	if !slices.Equal(got, []string{"c", "b"}) {
		t.Errorf("got %v", got)
	}
}

func TestEdit(t *testing.T) {
	pod := create("", "v1", "pods", "Pod", "prod")
	services := resources("", "v1", "services")
	pods := resources("", "v1", "pods")
	var empty match.Index[string]
	first := empty.Edit(nil, []match.Item[string]{item("b", pods), item("a", pods), item("c", services)})
	for _, step := range []struct {
		name string
		ix   *match.Index[string]
		want string
		all  string
	}{
		{"the zero value", &empty, "", ""},
		{"add", first, "a b", "a b c"},
		{"add the same name twice", empty.Edit(nil, []match.Item[string]{item("a", services), item("a", pods)}), "a", "a"},
		{"replace, now matching", first.Edit(nil, []match.Item[string]{item("c", pods)}), "a b c", "a b c"},
		{"replace, no longer matching", first.Edit(nil, []match.Item[string]{item("a", services)}), "b", "a b c"},
		{"remove", first.Edit([]string{"a", "unknown"}, nil), "b", "b c"},
		{"remove and add the same name", first.Edit([]string{"a"}, []match.Item[string]{item("a", pods)}), "a b", "a b c"},
		{"remove all", first.Edit([]string{"a", "b", "c"}, nil), "", ""},
		{"the index that was edited", first, "a b", "a b c"},
	} {
		t.Run(step.name, func(t *testing.T) {
			if got := candidates(step.ix, pod); got != step.want {
				t.Errorf("candidates: got %q, want %q", got, step.want)
			}
			var all []string
			for _, item := range step.ix.All() {
				all = append(all, item.Name)
				if got, ok := step.ix.Get(item.Name); !ok || got.Value != item.Value {
					t.Errorf("Get(%s): got %v, %v", item.Name, got, ok)
				}
			}
			if got := strings.Join(all, " "); got != step.all || len(all) != step.ix.Len() {
				t.Errorf("all: got %q, want %q; length %d", got, step.all, step.ix.Len())
			}
			if _, ok := step.ix.Get("unknown"); ok {
				t.Error("Get(unknown) finds something")
			}
		})
	}
}

// TestManyCombinations has rules whose keys cannot be listed, or not at full
// precision. They must be found, and slow nobody else where that can be avoided.
func TestManyCombinations(t *testing.T) {
	many := func(first string, n int) []string {
		values := []string{first}
		for i := range n {
			values = append(values, fmt.Sprint("v", i))
		}
		return values
	}
	huge := func(groups, versions, resources int) *admissionregistrationv1.MatchResources {
		r := &admissionregistrationv1.MatchResources{ResourceRules: rules("", "v1", "pods")}
		rule := &r.ResourceRules[0]
		rule.APIGroups, rule.APIVersions, rule.Resources = many("", groups), many("v1", versions), many("pods", resources)
		return r
	}
	ix := (*match.Index[string])(nil).Edit(nil, []match.Item[string]{
		item("groups", huge(1_000, 1_000, 100)),
		item("resources", huge(1_000, 1_000, 100_000)),
		item("versions", huge(2, 1_000, 10)),
	})
	pod, node := create("", "v1", "pods", "Pod", "prod"), create("", "v1", "nodes", "Node", "")
	if got := candidates(ix, pod); got != "groups resources versions" {
		t.Errorf("pod: got %q", got)
	}
	if got := candidates(ix, node); got != "resources" {
		t.Errorf("node: got %q", got)
	}
	if got := candidates(ix.Edit([]string{"groups", "resources"}, nil), pod); got != "versions" {
		t.Errorf("after removal: got %q", got)
	}
}

func TestIndexIsSafeForConcurrentUse(t *testing.T) {
	ix := installed(10, 100)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 50 {
				ix.Edit([]string{"match-0"}, []match.Item[int]{{Name: fmt.Sprint(i, j), Criteria: match.Compile(nil)}})
				if got := ix.Candidates(match.NewSubject(request.New(create("", "v1", "pods", "Pod", "prod")), newWorld()), nil); len(got) != 10 {
					t.Errorf("got %d candidates", len(got))
				}
			}
		})
	}
	group.Wait()
}

func TestCandidatesDoesNotAllocate(t *testing.T) {
	w, ix := newWorld(), installed(10, 1_000)
	req, buf := request.New(create("", "v1", "pods", "Pod", "prod")), make([]int, 0, 10)
	allocated := testing.AllocsPerRun(100, func() {
		if got := ix.Candidates(match.NewSubject(req, w), buf); len(got) != 10 {
			t.Fatalf("got %d candidates", len(got))
		}
	})
	if allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}
