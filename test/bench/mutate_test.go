// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/clock"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/hack/bench/unmatched"
	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect"
	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/plugin"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// sets are the sets of policies of hack/bench that change objects, and how many there are.
func sets() map[string]int {
	return map[string]int{"kyverno-jsonpatch": 10, "kyverno-merge-1": 1, "kyverno-merge-10": 10}
}

// BenchmarkMutate measures one request that the policies of a set change, with policies
// beside them that do not match.
func BenchmarkMutate(b *testing.B) {
	for _, set := range slices.Sorted(maps.Keys(sets())) {
		for _, beside := range []int{0, 10, 1_000} {
			b.Run(fmt.Sprintf("%s+%d", set, beside), func(b *testing.B) {
				m := startMutating(b, set, beside)
				benchmark(b, func() { m.mutate(b) })
			})
		}
	}
}

// TestMutate: what BenchmarkMutate measures happens. All policies of the set change the
// object, and the others have no part in that.
func TestMutate(t *testing.T) {
	for set, policies := range sets() {
		m := startMutating(t, set, 20)
		changed := map[string]bool{}
		v := m.mutate(t)
		for _, evaluation := range v.Evaluations {
			if evaluation.Outcome != verdict.Changed {
				t.Errorf("%s: got %+v", set, evaluation)
			}
			changed[evaluation.Policy.Name] = true
		}
		if len(changed) != policies {
			t.Errorf("%s: %v have changed the object, want %d", set, changed, policies)
		}
	}
}

// mutating is our engine with policies that mutate.
type mutating struct {
	registered *plugin.Registered
	view       cluster.View
	req        *request.Request
}

func startMutating(t testing.TB, set string, beside int) *mutating {
	t.Helper()
	view, err := offline.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dialects := dialect.All()
	policies := catalog.New(dialects)
	found := read(t, filepath.Join("..", "..", "hack", "bench", "sets", set+".yaml"))
	for i := range beside {
		found = append(found, unmatched.Policy(i))
	}
	var changes []catalog.Change
	for _, object := range found {
		changes = append(changes, written(t, object))
	}
	if err := policies.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	m := &mutating{view: view, req: exampleRequest(t)}
	if m.registered, err = plugin.NewRegistered(dialects, chain.New(policies.Current, clock.RealClock{}), nil); err != nil {
		t.Fatal(err)
	}
	if got := policies.Current().Len(); got != len(found) {
		t.Fatalf("%d policies are in force, want %d", got, len(found))
	}
	return m
}

// read returns the objects of a file.
func read(t testing.TB, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var found []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatalf("%s: %v", file, err)
		case len(object.Object) > 0:
			found = append(found, object)
		}
	}
}

// written returns a mutate policy as it comes from the storage.
func written(t testing.TB, object *unstructured.Unstructured) catalog.Change {
	t.Helper()
	encoded, err := json.Marshal(object.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var spec kyvernov1.Spec
	if err := json.Unmarshal(encoded, &spec); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: object.GetName(), Namespace: object.GetNamespace(), Generation: 1, ResourceVersion: "1"}
	id := policy.ID{Kind: object.GetKind(), Namespace: meta.Namespace, Name: meta.Name}
	if id.Kind == "Policy" {
		return catalog.Change{ID: id, Object: &policyapi.Policy{ObjectMeta: meta, Spec: spec}}
	}
	return catalog.Change{ID: id, Object: &policyapi.ClusterPolicy{ObjectMeta: meta, Spec: spec}}
}

// exampleRequest is the request that hack/bench sends.
func exampleRequest(t testing.TB) *request.Request {
	t.Helper()
	encoded, err := os.ReadFile(filepath.Join("..", "..", "artifacts", "bench", "review.json"))
	if err != nil {
		t.Fatal(err)
	}
	var review struct {
		Request request.Review `json:"request"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(encoded, &review); err != nil {
		t.Fatal(err)
	}
	req, err := request.FromReview(&review.Request)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func (m *mutating) mutate(t testing.TB) verdict.Verdict {
	v, err := m.registered.Mutate(t.Context(), m.req.WithObject(m.req.Object), m.view) // what is derived from a request is not kept
	if err != nil || !v.Allowed || len(patch.Diff(m.req.Object.Object, v.Object.Object)) == 0 {
		t.Fatalf("got %+v and error %v, want a change", v, err)
	}
	return v
}
