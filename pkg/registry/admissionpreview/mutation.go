// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"encoding/json"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portcullis-dev/portcullis/pkg/admission/patch"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// showMutation puts into out what the rules have changed, one after the other and
// together. What a rule has taken from an object that the caller may not read would be
// in all of that: then only the rules are shown.
func showMutation(out *policyapi.AdmissionPreviewStatus, req *request.Request, answer *verdict.Verdict) {
	if answer.Object == nil || req.Object == nil {
		return
	}
	if concealsMutation(answer) {
		out.Object = nil
		return
	}
	out.Object = &runtime.RawExtension{Object: answer.Object}
	out.Patch = changes(req.Object, answer.Object)
	before := req.Object
	for i := range answer.Evaluations {
		if after := answer.Evaluations[i].Finding.Object; answer.Evaluations[i].Outcome == verdict.Changed && after != nil {
			out.Evaluations[i].Patch = changes(before, after)
			before = after
		}
	}
	for _, found := range answer.Diverging {
		next := policyapi.Divergence{Policy: policyapi.PolicyReference(found.Policy), Rule: found.Rule}
		if found.Concealed == "" {
			next.Patch = changes(found.Before, found.After)
		}
		out.Diverging = append(out.Diverging, next)
	}
}

func concealsMutation(answer *verdict.Verdict) bool {
	for i := range answer.Evaluations {
		step := &answer.Evaluations[i]
		if step.Outcome == verdict.Changed && step.Finding.Trace != nil && step.Finding.Trace.Concealed != "" {
			return true
		}
	}
	return false
}

// changes returns the patch that leads from one object to another.
func changes(from, to *unstructured.Unstructured) []policyapi.PatchOperation {
	operations := patch.Diff(from.Object, to.Object)
	out := make([]policyapi.PatchOperation, 0, len(operations))
	for i := range operations {
		next := policyapi.PatchOperation{Op: operations[i].Op, Path: operations[i].Path}
		if next.Op != "remove" {
			raw, err := json.Marshal(operations[i].Value)
			if err != nil { // unreachable: it is decoded JSON
				continue
			}
			next.Value = &apiextensionsv1.JSON{Raw: raw}
		}
		out = append(out, next)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}
