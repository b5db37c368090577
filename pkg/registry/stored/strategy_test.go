// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func policyWith(generation int64, expression string, observed int64, label string) *policy.ValidatingAdmissionPolicy {
	p := &policy.ValidatingAdmissionPolicy{}
	p.Name = "p"
	p.Generation = generation
	p.Labels = map[string]string{"l": label}
	p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: expression}}
	p.Status.ObservedGeneration = observed
	return p
}

func bindingWith(generation int64, policyName string) *policy.ValidatingAdmissionPolicyBinding {
	b := &policy.ValidatingAdmissionPolicyBinding{}
	b.Name = "b"
	b.Generation = generation
	b.Spec.PolicyName = policyName
	return b
}

func kindOf(t *testing.T, obj runtime.Object) Kind {
	t.Helper()
	for _, kind := range Kinds() {
		if kind.Spec.equal(obj, obj) {
			return kind
		}
	}
	t.Fatalf("no kind has objects of type %T", obj)
	return Kind{}
}

func TestPrepare(t *testing.T) {
	tests := []struct {
		name     string
		old, obj runtime.Object // old is nil on create
		status   bool
		want     runtime.Object
	}{
		{
			name: "create starts at generation 1 without status",
			obj:  policyWith(7, "true", 7, "a"),
			want: policyWith(1, "true", 0, "a"),
		},
		{
			name: "create of a kind without status",
			obj:  bindingWith(7, "p"),
			want: bindingWith(1, "p"),
		},
		{
			name: "changed spec is a new generation and the status stays",
			old:  policyWith(3, "true", 2, "a"),
			obj:  policyWith(3, "false", 9, "b"),
			want: policyWith(4, "false", 2, "b"),
		},
		{
			name: "changed metadata alone is no new generation",
			old:  policyWith(3, "true", 2, "a"),
			obj:  policyWith(3, "true", 2, "b"),
			want: policyWith(3, "true", 2, "b"),
		},
		{
			name: "changed spec of a kind without status",
			old:  bindingWith(3, "p"),
			obj:  bindingWith(3, "q"),
			want: bindingWith(4, "q"),
		},
		{
			name:   "status update changes the status alone",
			old:    policyWith(3, "true", 2, "a"),
			obj:    policyWith(3, "false", 3, "b"),
			status: true,
			want:   policyWith(3, "true", 3, "a"),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kind := kindOf(t, test.obj)
			writes := strategy{kind: kind}
			switch {
			case test.old == nil:
				writes.PrepareForCreate(t.Context(), test.obj)
			case test.status:
				statusStrategy{writes}.PrepareForUpdate(t.Context(), test.obj, test.old)
			default:
				writes.PrepareForUpdate(t.Context(), test.obj, test.old)
			}
			if !apiequality.Semantic.DeepEqual(test.obj, test.want) {
				t.Errorf("got  %#v\nwant %#v", test.obj, test.want)
			}
		})
	}
}

func TestResetFields(t *testing.T) {
	for _, kind := range Kinds() {
		reset := strategy{kind: kind}.GetResetFields()
		want := ".metadata.annotations.policy.portcullis.dev/undecodable"
		if kind.Status != nil {
			want = ".status\n" + want
		}
		if got := reset["policy.portcullis.dev/v1alpha1"].String(); got != want {
			t.Errorf("%s: resets %q, want %q", kind.Resource, got, want)
		}
		if kind.Status == nil {
			continue
		}
		status := statusStrategy{strategy{kind: kind}}.GetResetFields()["policy.portcullis.dev/v1alpha1"]
		if want := ".metadata\n.spec"; status.String() != want {
			t.Errorf("%s/status: resets %q, want %q", kind.Resource, status, want)
		}
	}
}

func TestKindsRefuseForeignObjects(t *testing.T) {
	foreign := &metav1.Status{}
	for _, kind := range Kinds() {
		own := kind.New()
		if kind.Spec.equal(own, foreign) || kind.Spec.equal(foreign, own) {
			t.Errorf("%s: a foreign object has the same spec", kind.Resource)
		}
		if len(kind.Validate(foreign)) == 0 {
			t.Errorf("%s: Validate accepts a foreign object", kind.Resource)
		}
		if len(kind.ValidateUpdate(foreign, own)) == 0 || len(kind.ValidateUpdate(own, foreign)) == 0 {
			t.Errorf("%s: ValidateUpdate accepts a foreign object", kind.Resource)
		}
		if kind.Status != nil && len(kind.ValidateStatusUpdate(foreign, own)) == 0 {
			t.Errorf("%s: ValidateStatusUpdate accepts a foreign object", kind.Resource)
		}
		if _, err := kind.Cells(foreign); err == nil {
			t.Errorf("%s: Cells accepts a foreign object", kind.Resource)
		}
	}
}

func TestWritesAreGuarded(t *testing.T) {
	if (strategy{}).AllowCreateOnUpdate(t.Context()) {
		t.Error("an update may create")
	}
	if (strategy{}).AllowUnconditionalUpdate(t.Context()) {
		t.Error("an update needs no resourceVersion")
	}
}

// TestWarnings: they are about the spec, and writes of the status have none.
func TestWarnings(t *testing.T) {
	kind := kindOf(t, policyWith(1, "", 0, ""))
	silent := strategy{kind: kind}
	kind.Warnings = Warnings(func(_ context.Context, p *policy.ValidatingAdmissionPolicy) []string {
		return []string{"see " + p.Spec.Validations[0].Expression}
	})
	writes := strategy{kind: kind}
	obj, old := policyWith(1, "new", 0, ""), policyWith(1, "old", 0, "")
	tests := []struct {
		name string
		got  []string
		want string
	}{
		{"create", writes.WarningsOnCreate(t.Context(), obj), "[see new]"},
		{"update", writes.WarningsOnUpdate(t.Context(), obj, old), "[see new]"},
		{"update of nothing", writes.WarningsOnUpdate(t.Context(), obj, obj), "[see new]"},
		{"status", statusStrategy{writes}.WarningsOnUpdate(t.Context(), obj, old), "[]"},
		{"a foreign object", writes.WarningsOnCreate(t.Context(), bindingWith(1, "p")), "[]"},
		{"a kind without warnings", silent.WarningsOnCreate(t.Context(), obj), "[]"},
		{"an update of a kind without warnings", silent.WarningsOnUpdate(t.Context(), obj, old), "[]"},
	}
	for _, test := range tests {
		if got := fmt.Sprint(test.got); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}
