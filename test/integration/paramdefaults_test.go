// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// TestParamDefaults has a policy that reads a field of its param that only the
// definition of the param sets.
func TestParamDefaults(t *testing.T) {
	const (
		withDefault = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: replicalimits.rules.example.com}
spec:
  group: rules.example.com
  scope: Namespaced
  names: {plural: replicalimits, singular: replicalimit, kind: ReplicaLimit}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {maxReplicas: {type: integer, default: %d}}}}
`
		bare    = "apiVersion: rules.example.com/v1\nkind: ReplicaLimit\nmetadata: {name: limit, namespace: default}\n"
		tooMany = "ValidatingAdmissionPolicy 'limit' with binding 'limit' denied request: failed expression: object.spec.replicas <= params.maxReplicas"
	)
	low, high := fmt.Sprintf(withDefault, 5), fmt.Sprintf(withDefault, 6)
	objects := manifests(t.TempDir())
	objects.write(t, "definition.yaml", low)
	objects.write(t, "limit.yaml", bare)
	a := newAPI(t, harness.WithObjects(string(objects)))
	a.storeLimited(t, admissionregistrationv1.Fail)
	a.waitForVerdict(t, tooMany)

	previews := map[string]struct {
		cluster []string
		want    string
	}{
		"param of the server":               {nil, tooMany},
		"param laid over":                   {[]string{bare}, tooMany},
		"param with its own value":          {[]string{bare + "maxReplicas: 6\n"}, ""},
		"param and definition laid over":    {[]string{bare, high}, ""},
		"definition over a defaulted param": {[]string{high}, tooMany},
	}
	for name, test := range previews {
		spec := v1alpha1.AdmissionPreviewSpec{Request: &v1alpha1.PreviewRequest{Object: raw(deployment)}}
		for _, text := range test.cluster {
			data, err := yaml.YAMLToJSON([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			spec.Cluster = append(spec.Cluster, runtime.RawExtension{Raw: data})
		}
		got := ""
		if status := a.preview(t, spec); !status.Allowed {
			got = status.Result.Details.Causes[0].Message
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}

	objects.write(t, "definition.yaml", high)
	a.waitForVerdict(t, "")
}
