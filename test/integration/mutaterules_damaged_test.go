// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
)

// mutate posts a review that must be judged to the door of mutations.
func (a *api) mutate(t *testing.T, body []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	got := a.do(t, request{method: "POST", path: apiserver.MutationPath, body: body})
	var review admissionv1.AdmissionReview
	if got.code != http.StatusOK {
		t.Fatalf("%d: %s", got.code, got.body)
	}
	got.decode(t, &review)
	return review.Response
}

// TestDamagedRules puts into etcd, in place of mutate rules, what cannot be decoded: it
// fails the requests that a rule may match, by the failurePolicy if that can be read, and
// those of no other namespace if it is a Policy.
func TestDamagedRules(t *testing.T) {
	a := newAPI(t)
	etcd := a.etcd(t)
	const rules = `"rules":[{"name":"r","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"mutate":{"patchesJson6902":"[]"}}]`
	stored := func(kind, metadata, version, spec string) string {
		return fmt.Sprintf(`{"kind":%q,"apiVersion":"policy.portcullis.dev/%s","metadata":{"name":"x",%s"uid":"u","generation":1},"spec":{%s}}`, kind, version, metadata, spec)
	}
	for _, test := range []struct {
		name, key, value string
		// pod and secret say whether a Pod and a Secret of the namespace test are denied.
		pod, secret bool
	}{
		{"garbage", "clusterpolicies/x", "\x00", true, true},
		{"an unknown version", "clusterpolicies/x", stored("ClusterPolicy", "", "v9", rules), true, false},
		{"an unknown version, failurePolicy Ignore", "clusterpolicies/x", stored("ClusterPolicy", "", "v9", rules+`,"failurePolicy":"Ignore"`), false, false},
		{"a match that is not understood", "clusterpolicies/x", stored("ClusterPolicy", "", "v9", strings.Replace(rules, `"kinds"`, `"sorts":[],"kinds"`, 1)), true, true},
		{"garbage in the namespace", "policies/test/x", "\x00", true, true},
		{"an unknown version in the namespace", "policies/test/x", stored("Policy", `"namespace":"test",`, "v9", rules), true, false},
		{"garbage in another namespace", "policies/other/x", "\x00", false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			key := "/portcullis.dev/policy.portcullis.dev/" + test.key
			put(t, etcd, key, test.value)
			defer func() {
				if _, err := etcd.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				a.waitForRules(t, 0)
			}()
			a.waitForRules(t, 1)
			pod := newReview(t, "Pod", "pods", "p", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"test"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
			for _, asked := range []struct {
				what   string
				review []byte
				denied bool
			}{{"Pod", pod, test.pod}, {"Secret", secretReview(t), test.secret}} {
				got := verdict(a.mutate(t, asked.review))
				if (got != "") != asked.denied || got != "" && !strings.Contains(got, "the stored object cannot be decoded: ") {
					t.Errorf("%s: %q, denied should be %t", asked.what, got, asked.denied)
				}
			}
		})
	}
}

// waitForRules waits until a number of policies that do not compile are in force.
func (a *api) waitForRules(t *testing.T, want int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		body := string(a.do(t, request{method: "GET", path: "/metrics"}).body)
		got := 0
		for _, kind := range []string{"ClusterPolicy", "Policy"} {
			if strings.Contains(body, fmt.Sprintf("portcullis_policies{compiled=\"false\",kind=%q} 1\n", kind)) {
				got++
			}
		}
		return got == want, nil
	})
	if err != nil {
		t.Fatalf("there are not %d damaged policies", want)
	}
}
