// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "sigs.k8s.io/json"
)

// FuzzMerge merges whatever can be decoded. It must neither panic nor modify
// its input, and always come to the same result.
func FuzzMerge(f *testing.F) {
	for _, seed := range [][2]string{
		{aPod + `"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]}`, `"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 1, "protocol": "TCP"}]}]}`},
		{aPod + `"metadata": {"finalizers": ["a"]}`, `"metadata": {"finalizers": [{"$patch": "replace"}, "b"]}`},
		{aWidget + `"spec": {"a": {"b": 1}}`, `"spec": {"a": {"$patch": "replace", "c": null}}`},
		{aService + `"spec": {"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}, {}]}`, `"spec": {"ports": [{"port": "1", "$patch": "delete"}]}`},
	} {
		f.Add([]byte("{"+seed[0]+"}"), []byte("{"+seed[1]+"}"))
	}
	f.Fuzz(func(t *testing.T, objectText, patchText []byte) {
		var object map[string]any
		var patch any
		if kjson.UnmarshalCaseSensitivePreserveInts(objectText, &object) != nil || kjson.UnmarshalCaseSensitivePreserveInts(patchText, &patch) != nil {
			t.Skip()
		}
		objectBefore, patchBefore := copied(t, object), copied(t, patch)
		got, err := Merge(object, patch)
		if !cmp.Equal(objectBefore, copied(t, object)) || !cmp.Equal(patchBefore, copied(t, patch)) {
			t.Error("the input was modified")
		}
		again, errAgain := Merge(object, patch)
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() || !cmp.Equal(got, again) {
			t.Errorf("once %v, %v, then %v, %v", got, err, again, errAgain)
		}
	})
}
