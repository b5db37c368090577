// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
)

func toy(name, forbid string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "toys.dev/v1", "kind": "Toy", "metadata": map[string]any{"name": name}, "forbid": forbid,
	}}
}

func same(obj runtime.Object) (runtime.Object, error) { return obj, nil }

func TestApply(t *testing.T) {
	c := catalog.New([]policy.Dialect{dialecttest.Toy{}})
	if c.Current() != nil {
		t.Fatal("a set is in force before anything was read")
	}
	id := func(name string) policy.ID { return policy.ID{Kind: "Toy", Name: name} }
	steps := []struct {
		name    string
		changes []catalog.Change
		want    int
	}{
		{name: "nothing stored", want: 0},
		{name: "two written", changes: []catalog.Change{{ID: id("a"), Object: toy("a", "x")}, {ID: id("b"), Object: toy("b", "x")}}, want: 2},
		{name: "one rewritten", changes: []catalog.Change{{ID: id("a"), Object: toy("a", "y")}}, want: 2},
		{name: "one deleted", changes: []catalog.Change{{ID: id("a")}}, want: 1},
		{name: "an unknown one deleted", changes: []catalog.Change{{ID: id("z")}}, want: 1},
		{name: "one that does not compile stays in force", changes: []catalog.Change{{ID: id("c"), Object: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "c"}}}}}, want: 2},
	}
	for _, step := range steps {
		before := c.Current()
		if err := c.Apply(t.Context(), step.changes); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := c.Current().Len(); got != step.want {
			t.Errorf("%s: %d policies in force, want %d", step.name, got, step.want)
		}
		if before == c.Current() {
			t.Errorf("%s: the set was changed in place", step.name)
		}
	}
}

func TestCompileRefusesUnknownKinds(t *testing.T) {
	c := catalog.New([]policy.Dialect{dialecttest.Toy{}})
	_, errs := c.Compile(t.Context(), "Ty", toy("a", "x"))
	if want := `kind: Unsupported value: "Ty": supported values: "Toy"`; len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}
}

// TestRunFollows watches a fake API: what is written is in force, what is
// deleted is not.
func TestRunFollows(t *testing.T) {
	source, informer := fakeSource(t, toy("a", "x"), toy("b", "x"))
	c := catalog.New([]policy.Dialect{dialecttest.Toy{}})

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, []catalog.Source{{Kind: "Toy", Informer: informer}}, same) }()
	go informer.RunWithContext(ctx)

	eventually(t, "the first set is not complete", func() bool { return c.Current() != nil })
	if got := c.Current().Len(); got != 2 {
		t.Fatalf("the first set has %d policies, want both that were stored", got)
	}
	for i := range 20 {
		source.Add(toy(fmt.Sprintf("n%d", i), "x"))
	}
	eventually(t, "what was written is not in force", func() bool { return c.Current().Len() == 22 })
	source.Delete(toy("a", "x"))
	eventually(t, "what was deleted is in force", func() bool { return c.Current().Len() == 21 })

	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

// TestRunEndsAfterItCouldFollow: once an object cannot be read, no set is in force
// any more, and none comes back.
func TestRunEndsAfterItCouldFollow(t *testing.T) {
	source, informer := fakeSource(t, toy("a", "x"))
	c := catalog.New([]policy.Dialect{dialecttest.Toy{}})
	go informer.RunWithContext(t.Context())
	unconvertible := errors.New("unconvertible")
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(t.Context(), []catalog.Source{{Kind: "Toy", Informer: informer}}, func(obj runtime.Object) (runtime.Object, error) {
			if stored, ok := obj.(*unstructured.Unstructured); ok && stored.GetName() == "b" {
				return nil, unconvertible
			}
			return obj, nil
		})
	}()
	eventually(t, "the first set is not complete", func() bool { return c.Current() != nil })
	source.Add(toy("b", "x"))
	if err := <-ended; !errors.Is(err, unconvertible) {
		t.Errorf("Run ended with %v, want %v", err, unconvertible)
	}
	if err := c.Apply(t.Context(), nil); !errors.Is(err, unconvertible) {
		t.Errorf("Apply: got %v, want %v", err, unconvertible)
	}
	if c.Current() != nil {
		t.Error("a set is in force that nobody keeps in step")
	}
}

// TestApplyRefusesWhatHasNoUnit: a stored object must not be left out in silence.
func TestApplyRefusesWhatHasNoUnit(t *testing.T) {
	c := catalog.New([]policy.Dialect{dialecttest.Toy{}})
	a, b := policy.ID{Kind: "Toy", Name: "a"}, policy.ID{Kind: "Toy", Name: "b"}
	if err := c.Apply(t.Context(), []catalog.Change{{ID: a, Object: toy("a", "x")}}); err != nil {
		t.Fatal(err)
	}
	err := c.Apply(t.Context(), []catalog.Change{{ID: a}, {ID: b, Object: &unstructured.UnstructuredList{}}})
	if want := `Toy "b" does not compile: `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got error %v, want one that begins with %s", err, want)
	}
	if got := c.Current().Len(); got != 1 {
		t.Errorf("%d policies in force, want the one from before", got)
	}
}

func TestRunEndsWhenItCannotFollow(t *testing.T) {
	_, informer := fakeSource(t, toy("a", "x"))
	c := catalog.New([]policy.Dialect{dialecttest.Toy{}})
	go informer.RunWithContext(t.Context())

	unconvertible := errors.New("unconvertible")
	err := c.Run(t.Context(), []catalog.Source{{Kind: "Toy", Informer: informer}},
		func(runtime.Object) (runtime.Object, error) { return nil, unconvertible })
	if !errors.Is(err, unconvertible) || c.Current() != nil {
		t.Errorf("got error %v and set %v, want %v and none", err, c.Current(), unconvertible)
	}
}

// fakeSource is an API that holds objects, with an informer of it.
func fakeSource(t *testing.T, objects ...*unstructured.Unstructured) (*cachetesting.FakeControllerSource, cache.SharedIndexInformer) {
	t.Helper()
	source := cachetesting.NewFakeControllerSource()
	for _, object := range objects {
		source.Add(object)
	}
	return source, cache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, cache.Indexers{})
}

func eventually(t *testing.T, complaint string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(complaint)
	}
}
