// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// TestReadyTellsWhyNot: whoever waits for the policies learns what for.
func TestReadyTellsWhyNot(t *testing.T) {
	const unread = "the stored policies have not been read completely"
	etcd := &storage{}
	policies := catalog.New(nil)
	p := NewPolicies(policies, runtime.NewScheme(), NewSnapshot(etcd, clock.RealClock{}))
	want := func(want string) {
		t.Helper()
		got := ""
		if err := p.Ready(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want(unread)
	etcd.gone = errors.New("etcd does not answer")
	want(unread + ": etcd does not answer")
	if err := NewPolicies(policies, runtime.NewScheme(), nil).Ready(); err == nil || err.Error() != unread {
		t.Errorf("without a snapshot: got %v, want %s", err, unread)
	}
	if err := policies.Apply(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want("")

	// The scheme knows no kind: what is stored cannot be converted, and nobody
	// knows what an empty object is.
	mirror := newMirror(nil, "validatingadmissionpolicies", &policyapi.ValidatingAdmissionPolicy{})
	go func() {
		<-mirror.handled
		if err := mirror.Replace([]any{&policyapi.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, "1"); err != nil {
			t.Error(err)
		}
	}()
	p.follow(t.Context(), []catalog.Source{{Kind: "ValidatingAdmissionPolicy", Informer: mirror}})
	if err := p.Ready(); err == nil || err.Error() == unread {
		t.Errorf("got %v after it could not follow any more", err)
	}
}
