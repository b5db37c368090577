// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/admission"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// TestIdentity is about rules that make another object of the one that is asked about.
func TestIdentity(t *testing.T) {
	t.Parallel()
	const (
		stays = ", and with that which object it is: leave it as it was"
		other = "metadata: {name: other}"
	)
	update := func(f *request.Fields) { f.Operation, f.OldObject = admission.Update, f.Object }
	for _, test := range []struct {
		name, overlay string
		change        func(*request.Fields)
		want          string // what changes, or nothing for no error
	}{
		{"the name of a new object", other, nil, ""},
		{"the name of one that is there", other, update, "metadata.name"},
		{"the name of what a subresource is created with", other, func(f *request.Fields) { f.SubResource = "binding" }, "metadata.name"},
		{"no name", "metadata: {name: null}", update, "metadata.name"},
		{"generateName", "metadata: {generateName: other-}", update, ""},
		{"generateName of a new object", "metadata: {generateName: other-}", nil, ""},
		{"the namespace", "metadata: {namespace: other}", nil, "metadata.namespace"},
		{"no namespace", "metadata: {namespace: null}", nil, "metadata.namespace"},
		{"the namespace of the request", "metadata: {namespace: '{{ request.namespace }}'}", func(f *request.Fields) {
			f.Object = f.Object.DeepCopy()
			f.Object.SetNamespace("")
		}, ""},
		{"the uid of a new object", "metadata: {uid: other}", nil, "metadata.uid"},
		{"the uid", "metadata: {uid: other}", update, "metadata.uid"},
		{"an empty uid where there is none", "metadata: {uid: ''}", update, ""},
		{"the kind", "kind: Secret", nil, "kind"},
		{"the version", "apiVersion: v2", update, "apiVersion"},
		{"several", "{apiVersion: v2, kind: Secret, metadata: {name: other, uid: u}}", update, "apiVersion, kind, metadata.uid, metadata.name"},
		{"all metadata", "{kind: Pod, metadata: null}", nil, "metadata.namespace"},
		{"what else there is", "metadata: {labels: {a: b}, finalizers: [example.com/f]}", update, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			overlay := test.overlay
			if !strings.HasPrefix(overlay, "{") {
				overlay = "{" + overlay + "}"
			}
			fields := create(object(t, pod)).Fields
			if test.change != nil {
				test.change(&fields)
			}
			// The rule that follows sees the object without what has failed.
			const begin = "\n  match: {any: [{resources: {kinds: [Pod, Pod/binding]}}]}\n  mutate: {patchStrategicMerge: "
			unit := compiled(t, "rules:\n- name: r"+begin+overlay+"}\n- name: next"+begin+"{metadata: {labels: {next: x}}}}\n")
			findings := unit.Policy.Program.Evaluate(t.Context(), input(request.New(fields), offlineView(t)))
			first := findings[0]
			if test.want == "" {
				if first.Kind != verdict.Mutated {
					t.Errorf("got %v, want a change", first)
				}
				return
			}
			if want := `rule "r": it changes ` + test.want + stays; first.Kind != verdict.Error || first.Message != want {
				t.Errorf("got %v, want the error %q", first, want)
			}
			want := fields.Object.DeepCopy()
			want.SetLabels(map[string]string{"app": "web", "next": "x"})
			at := slices.IndexFunc(findings, func(f verdict.Finding) bool { return f.Rule == "next" })
			if at < 0 {
				t.Fatalf("no finding of the next rule in %v", findings)
			}
			if diff := cmp.Diff(want, findings[at].Object); diff != "" {
				t.Errorf("the next rule (-want +got)\n%s", diff)
			}
		})
	}
}
