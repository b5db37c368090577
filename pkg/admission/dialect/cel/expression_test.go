// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"runtime"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

func compileOne(t testing.TB, c *compiler, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) *program {
	t.Helper()
	p, errs := c.compile(spec)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return p
}

func specOf(definitions [][2]string, expression string) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
	s := &admissionregistrationv1.ValidatingAdmissionPolicySpec{Validations: []admissionregistrationv1.Validation{{Expression: expression}}}
	for _, d := range definitions {
		s.Variables = append(s.Variables, admissionregistrationv1.Variable{Name: d[0], Expression: d[1]})
	}
	return s
}

// TestSharing: what means the same is compiled once, and nothing else.
func TestSharing(t *testing.T) {
	const plain, reading, keyword = "object.spec.replicas == 1", "variables.a == 1", "variables.namespace == 1"
	withParams := specOf(nil, plain)
	withParams.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	tests := []struct {
		name        string
		left, right *admissionregistrationv1.ValidatingAdmissionPolicySpec
		shared      bool
	}{
		{"the same", specOf(nil, plain), specOf(nil, plain), true},
		{"another text", specOf(nil, plain), specOf(nil, plain+" "), false},
		{"params", specOf(nil, plain), withParams, false},
		{"a variable that is not read", specOf([][2]string{{"a", "1"}}, plain), specOf([][2]string{{"a", "'x'"}}, plain), true},
		{"variables of one type", specOf([][2]string{{"a", "1"}}, reading), specOf([][2]string{{"a", "2"}}, reading), true},
		{"variables of two types", specOf([][2]string{{"a", "1"}}, reading), specOf([][2]string{{"a", "dyn(1)"}}, reading), false},
		{"variables that have the name of a keyword", specOf([][2]string{{"__namespace__", "1"}}, keyword), specOf([][2]string{{"__namespace__", "dyn(1)"}}, keyword), false},
		{"another variable as well", specOf([][2]string{{"a", "1"}, {"other", "1"}}, reading), specOf([][2]string{{"a", "1"}, {"another", "'x'"}}, reading), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newCompiler()
			left, right := compileOne(t, c, test.left), compileOne(t, c, test.right)
			if got := left.validations[0].expression == right.validations[0].expression; got != test.shared {
				t.Errorf("shared: %v, want %v", got, test.shared)
			}
		})
	}
}

// TestSharingKeepsNothingAlive: expressions go with the last policy that uses them.
func TestSharingKeepsNothingAlive(t *testing.T) {
	c := newCompiler()
	kept := compileOne(t, c, specOf(nil, "object.a == 1"))
	for range 2 {
		gone := compileOne(t, c, specOf([][2]string{{"a", "object.b"}}, "variables.a == 1"))
		if _, err := gone.validations[0].program(); err != nil { // one that counts keeps nothing alive either
			t.Fatal(err)
		}
		if n := c.expressions.Len(); n != 3 {
			t.Fatalf("%d expressions are known, want 3", n)
		}
		runtime.KeepAlive(gone)
		deadline := time.After(time.Minute)
		for c.expressions.Len() != 1 {
			runtime.GC()
			select {
			case <-deadline:
				t.Fatalf("%d expressions are known a minute after their policies have gone, want 1", c.expressions.Len())
			default:
				runtime.Gosched()
			}
		}
	}
	if again := compileOne(t, c, specOf(nil, "object.a == 1")); again.validations[0].expression != kept.validations[0].expression {
		t.Error("what is in use is not shared any more")
	}
}

// TestConcurrentCompilation compiles policies whose variables have the same names
// and other types at once.
func TestConcurrentCompilation(t *testing.T) {
	c := newCompiler()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				value, expression := "1", "variables.a + 1 == 2"
				if (i+j)%2 == 0 {
					value, expression = "'x'", "variables.a + 'y' == 'xy'"
				}
				if _, errs := c.compile(specOf([][2]string{{"a", value}}, expression)); len(errs) > 0 {
					t.Error(errs.ToAggregate())
				}
				if _, errs := c.compile(specOf(nil, expression)); len(errs) != 1 {
					t.Errorf("%d faults without the variable, want 1", len(errs))
				}
			}
		})
	}
	all.Wait()
	if n := len(c.workspaces.idle); n == 0 || n > runtime.GOMAXPROCS(0) {
		t.Errorf("%d workspaces are kept, want some and no more than %d", n, runtime.GOMAXPROCS(0))
	}
}
