// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// TestKeysThatAreNoNames: such a key can only be made behind the back of the
// server, and still must not keep the others from being listed.
func TestKeysThatAreNoNames(t *testing.T) {
	const command = "the stored object cannot be decoded: no object of the API can have its key: remove it with etcdctl del "
	s := newSalvager(t, validatingAdmissionPolicies())
	for _, test := range []struct{ key, name, word string }{
		{"a/p", "a:p", "'/prefix/validatingadmissionpolicies/a/p'"},
		{"", ":", "'/prefix/validatingadmissionpolicies/'"},
		{".", ":.", "'/prefix/validatingadmissionpolicies/.'"},
		{"..", ":..", "'/prefix/validatingadmissionpolicies/..'"},
		{"a%2f", "a:2f", "'/prefix/validatingadmissionpolicies/a%2f'"},
		{"\xff", ":", `$'/prefix/validatingadmissionpolicies/\xff'`},
		{"a/'; $(b)", "a:'; $(b)", `$'/prefix/validatingadmissionpolicies/a/\x27\x3b\x20\x24\x28b\x29'`},
	} {
		// Even an object that has the name which stands for the key.
		named := change(wholePolicy, `"name":"p"`, `"name":"`+test.name+`"`)
		data, _, err := s.TransformFromStorage(t.Context(), []byte(named), value.DefaultContext(s.root+test.key))
		if err != nil {
			t.Fatal(err)
		}
		obj, err := runtime.Decode(s.codec, data)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := obj.(*policy.ValidatingAdmissionPolicy)
		if !ok || p.Name != test.name || p.Spec.MatchConstraints == nil {
			t.Errorf("key %q: got %+v, want the name %q and what can be read", test.key, obj, test.name)
			continue
		}
		if damage := Damage(p); damage == nil || damage.Error() != command+test.word {
			t.Errorf("key %q: damage %v, want %s", test.key, damage, command+test.word)
		}
		// It is no use to say that a client can replace or delete it.
		if compiled := meta.FindStatusCondition(p.Status.Conditions, "Compiled"); compiled == nil || compiled.Message != command+test.word {
			t.Errorf("key %q: condition Compiled is %+v", test.key, compiled)
		}
	}
}
