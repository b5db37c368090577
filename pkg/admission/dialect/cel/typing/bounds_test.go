// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/typing"
)

// numbered returns n names, as rule takes them.
func numbered(prefix string, n int) string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("%s%d", prefix, i))
	}
	return strings.Join(names, ",")
}

func TestTypesThatCostTooMuch(t *testing.T) {
	p := policy(on(rule("apps", "v1", "deployments,daemonsets,replicasets"), rule("batch", "v1", "jobs")), "validation: object.nope == 1")
	p.Variables = policy(nil, "v: '"+strings.Repeat("ü", 18_000)+"'").Variables
	result, err := typing.New().Check(t.Context(), world(t), p)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(result.Types, result.Unchecked), "[apps/v1, Kind=DaemonSet apps/v1, Kind=Deployment] [apps/v1, Kind=ReplicaSet batch/v1, Kind=Job]"; got != want {
		t.Errorf("checked and unchecked: %s, want %s", got, want)
	}
	warnings := result.ExpressionWarnings()
	if got, want := strings.Join(fields(warnings), " "), "spec.validations[0].expression spec.matchConstraints.resourceRules"; got != want {
		t.Fatalf("warnings on %q, want %q", got, want)
	}
	const want = "the expressions are too many or too long to be checked against all types: 2 types are left out, from apps/v1, Kind=ReplicaSet on; spread them over several policies"
	if got := warnings[1].Warning; got != want || got != result.Incomplete() {
		t.Errorf("the last warning is %q and Incomplete says %q, want %q", got, result.Incomplete(), want)
	}
}

func TestRulesThatNameTooMuch(t *testing.T) {
	wide := rule(numbered("g", 200), "v1", numbered("r", 200))
	result, err := typing.New().Check(t.Context(), world(t), policy(on(deployments(), wide, rule("batch", "v1", "jobs")), "validation: object.nope == 1"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(result.Types), "[apps/v1, Kind=Deployment]"; got != want {
		t.Errorf("checked %s, want %s", got, want)
	}
	if got, want := result.Incomplete(), "the rules name more than 10000 resources: types of the others are not checked"; got != want {
		t.Errorf("Incomplete says %q, want %q", got, want)
	}
}

// TestLongTexts: each error quotes the whole line that it is in.
func TestLongTexts(t *testing.T) {
	const each = 10_000
	long := "validation: object.nope == '" + strings.Repeat("x", each-1000) + strings.Repeat("ü", 500) + "'"
	p := policy(on(deployments()), slices.Repeat([]string{long}, 18)...)
	result, err := typing.New().Check(t.Context(), world(t), p)
	if err != nil {
		t.Fatal(err)
	}
	size, warnings := 0, result.ExpressionWarnings()
	for _, warning := range warnings {
		size += len(warning.Warning)
		if !utf8.ValidString(warning.Warning) {
			t.Error("a warning was cut inside of a character")
		}
	}
	if size > 129<<10 || size < 100<<10 {
		t.Errorf("the warnings have %d bytes", size)
	}
	last := warnings[len(warnings)-1]
	if want := fmt.Sprintf("warnings on %d more expressions are left out: mend those above first", 18-len(warnings)+1); last.Warning != want || last.FieldRef != "spec.validations" {
		t.Errorf("the last warning is %q, want %q", last, want)
	}
	for _, line := range result.Lines(60) {
		if len(line) > 60 || strings.ContainsAny(line, "\n\t") || !utf8.ValidString(line) {
			t.Errorf("a line that is too long or none: %q", line)
		}
	}
}

// fault is a cluster that does not work.
type fault struct {
	typing.Cluster
	err error
}

func (f *fault) Schema(schema.GroupVersionKind) (*spec.Schema, error) { return nil, f.err }

// broken is a cluster that panics.
type broken struct{}

func (*broken) Mapper() meta.RESTMapper                              { panic("no mapper") }
func (*broken) Schema(schema.GroupVersionKind) (*spec.Schema, error) { panic("no schema") }

func TestFailures(t *testing.T) {
	p := policy(on(deployments()), "validation: object.nope == 1")
	ended, end := context.WithCancel(t.Context())
	end()
	unreachable := errors.New("unreachable")
	tests := []struct {
		name    string
		ctx     context.Context
		cluster typing.Cluster
		want    string
		is      error
	}{
		{"no schema", t.Context(), &fault{world(t), unreachable}, "checking types against apps/v1, Kind=Deployment: unreachable", unreachable},
		{"panic", t.Context(), &broken{}, "checking types: panic: no mapper; this is a fault of the program, please report it", nil},
		{"out of time", ended, world(t), "checking types: context canceled", context.Canceled},
	}
	for _, test := range tests {
		result, err := typing.New().Check(test.ctx, test.cluster, p)
		if result != nil || err == nil || err.Error() != test.want || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: got %v and error %v, want error %s", test.name, result, err, test.want)
		}
	}
}

// TestConcurrentChecks shares one checker, whose environments are kept and whose
// cluster changes.
func TestConcurrentChecks(t *testing.T) {
	checker, views := typing.New(), []typing.Cluster{world(t), world(t)}
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			p := policy(on(rule("", "v1", "configmaps")), fmt.Sprintf("v: size(object.data) + %d", i), fmt.Sprintf("validation: variables.v == 1 && object.nope%d", i))
			for range 5 {
				result, err := checker.Check(t.Context(), views[i/2%2], p)
				if err != nil || len(result.Findings) != 1 || !strings.Contains(result.Lines(200)[0], fmt.Sprintf("undefined field 'nope%d'", i)) {
					t.Errorf("got %v and error %v", result, err)
				}
			}
		})
	}
	wait.Wait()
}

// TestClustersAreNotHeld: what is kept of a cluster between two checks does not
// hold its objects, of which there may be very many.
func TestClustersAreNotHeld(t *testing.T) {
	checker, p := typing.New(), policy(on(deployments()), "validation: object.nope == 1")
	held := func() weak.Pointer[offline.View] {
		view, err := offline.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checker.Check(t.Context(), view, p); err != nil {
			t.Fatal(err)
		}
		return weak.Make(view)
	}()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		runtime.GC()
		return held.Value() == nil, nil
	})
	if err != nil {
		t.Error("the cluster is held")
	}
	runtime.KeepAlive(checker)
}

// BenchmarkCheck checks a typical policy: three validations, one variable and one
// type with a pod template.
func BenchmarkCheck(b *testing.B) {
	view := world(b)
	p := policy(
		on(deployments()), "containers: object.spec.template.spec.containers", "validation: object.spec.replicas > 1",
		"validation: variables.containers.all(c, c.image.startsWith('x'))", "validation: variables.containers.all(c, has(c.securityContext) && c.securityContext.privileged == true)",
	)
	for name, checker := range map[string]func() *typing.Checker{"new": typing.New, "known": func() func() *typing.Checker {
		c := typing.New()
		return func() *typing.Checker { return c }
	}()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := checker().Check(b.Context(), view, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
