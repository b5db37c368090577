// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

func labelled(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n", "labels": map[string]any{"a": value}}}}
}

// mutated is a step of a policy that has made an object.
func mutated(name string, object *unstructured.Unstructured, concealed string) verdict.Step {
	trace := &verdict.Trace{Concealed: concealed}
	return verdict.Step{
		Origin:  verdict.Origin{Policy: verdict.PolicyID{Kind: "ClusterPolicy", Name: name}, Mutates: true},
		Finding: verdict.Finding{Kind: verdict.Mutated, Rule: "r", Object: object, Trace: trace},
	}
}

func patchText(operations []policyapi.PatchOperation) string {
	text := ""
	for _, operation := range operations {
		text += fmt.Sprintf("%s %s %s;", operation.Op, operation.Path, operation.Value.Raw)
	}
	return text
}

// TestShowMutation: each rule is shown with what it has changed, so that two that fight
// over a field can be seen; and nothing of what a rule has taken from where the caller
// may not look.
func TestShowMutation(t *testing.T) {
	req := request.New(request.Fields{Operation: admission.Create, Object: labelled("0")})
	first, second := labelled("1"), labelled("2")
	answer := verdict.Fold([]verdict.Step{mutated("a", first, ""), mutated("b", second, "")})
	answer.Object = second
	answer.Diverging = []verdict.Divergence{{Policy: verdict.PolicyID{Kind: "ClusterPolicy", Name: "b"}, Rule: "r", Before: second, After: labelled("3")}}
	got := status(req, &answer)
	if patchText(got.Patch) != `replace /metadata/labels/a "2";` {
		t.Errorf("patch %s", patchText(got.Patch))
	}
	if one, two := patchText(got.Evaluations[0].Patch), patchText(got.Evaluations[1].Patch); one != `replace /metadata/labels/a "1";` || two != `replace /metadata/labels/a "2";` {
		t.Errorf("patches of the rules %s and %s", one, two)
	}
	if got.Evaluations[0].Phase != "Mutate" || got.Evaluations[0].Outcome != policyapi.OutcomeMutated {
		t.Errorf("evaluation %+v", got.Evaluations[0])
	}
	if len(got.Diverging) != 1 || patchText(got.Diverging[0].Patch) != `replace /metadata/labels/a "3";` || got.Diverging[0].Policy.Name != "b" {
		t.Errorf("diverging %+v", got.Diverging)
	}
	if got.Object == nil || got.Object.Object != second {
		t.Errorf("object %+v", got.Object)
	}

	answer = verdict.Fold([]verdict.Step{mutated("a", first, ""), mutated("b", second, "a ConfigMap")})
	answer.Object = second
	if got = status(req, &answer); got.Object != nil || got.Patch != nil || got.Evaluations[0].Patch != nil || got.Evaluations[1].Patch != nil || got.Diverging != nil {
		t.Errorf("it shows what is concealed: %+v", got)
	}
}
