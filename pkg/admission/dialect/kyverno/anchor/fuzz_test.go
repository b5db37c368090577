// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/anchor"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
)

// FuzzApply applies whatever can be decoded. It must neither panic nor modify its input,
// always come to the same result, and change nothing when it says that it was skipped.
func FuzzApply(f *testing.F) {
	const pod = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "web"}}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": "a", "image": "x:latest", "env": [{"name": "A"}]}, {"name": "b"}, null]}}`
	for _, overlay := range []string{
		`{"spec": {"containers": [{"(image)": "*:latest", "+(imagePullPolicy)": "Always"}]}}`,
		`{"metadata": {"labels": {"<(app)": "w* | x", "new": "{{ request.object.metadata.labels.app }}"}}}`,
		`{"spec": {"(volumes)": [{"(emptyDir)": {}}], "containers": [{"name": "*", "env": [{"(name)": "A", "value": "$(./../name)"}]}]}}`,
		`{"spec": {"volumes": [{"(emptyDir)": {"+(sizeLimit)": "1Gi"}, "$patch": "merge"}], "+(x)": [[{"(a)": 1}]]}}`,
		`{"spec": {"containers": [{"$patch": "replace"}, {"(name)": "b", "$patch": "delete"}, {"name": "c"}]}}`,
	} {
		f.Add([]byte(overlay), []byte(pod))
	}
	c := compiler()
	f.Fuzz(func(t *testing.T, overlayText, objectText []byte) {
		var value any
		var before map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts(overlayText, &value) != nil || kjson.UnmarshalCaseSensitivePreserveInts(objectText, &before) != nil {
			t.Skip()
		}
		scope := variables{"request": map[string]any{"object": before}, "element": map[string]any{"name": "a"}}
		valueWas, objectWas := encoded(t, value), encoded(t, before)
		overlay, _ := anchor.Compile(value, c, template.Place{Rule: map[string]any{"mutate": map[string]any{"patchStrategicMerge": value}}, Path: []string{"mutate", "patchStrategicMerge"}})
		got, skipped, err := overlay.Apply(t.Context(), newRun(), scope, before)
		if encoded(t, value) != valueWas || encoded(t, before) != objectWas {
			t.Error("the input was modified")
		}
		again, skippedAgain, errAgain := overlay.Apply(t.Context(), newRun(), scope, before)
		if skipped != skippedAgain || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() || !cmp.Equal(got, again) {
			t.Errorf("once %v, %q, %v, then %v, %q, %v", got, skipped, err, again, skippedAgain, errAgain)
		}
		if skipped != "" && encoded(t, got) != objectWas {
			t.Errorf("skipped (%s), but changed", skipped)
		}
	})
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
