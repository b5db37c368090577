// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

// withoutConditions is for tests that count the writes of an object: nobody else
// writes it then.
func withoutConditions() harness.Option {
	return harness.WithConfig(func(c *apiserver.Config) error {
		delete(c.Extra.Hooks, apiserver.ConditionsHook)
		return nil
	})
}

// condition returns one as status, reason and message, and nothing when there is
// none of this generation.
func condition(p *v1alpha1.ValidatingAdmissionPolicy, name string) string {
	c := meta.FindStatusCondition(p.Status.Conditions, name)
	if c == nil || c.ObservedGeneration != p.Generation {
		return ""
	}
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

// waitForCondition waits until a condition of this generation begins with want.
func (a *api) waitForCondition(t *testing.T, policy, name, want string) *v1alpha1.ValidatingAdmissionPolicy {
	t.Helper()
	var got *v1alpha1.ValidatingAdmissionPolicy
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		got = a.getPolicy(t, policy)
		return strings.HasPrefix(condition(got, name), want) && condition(got, name) != "", nil
	})
	if err != nil {
		t.Fatalf("condition %s of %s stays %q, want %q", name, policy, condition(got, name), want)
	}
	return got
}

const (
	inForce        = "True InForce it judges the requests that it matches"
	fitsConfigMaps = "True NoWarnings every expression fits /v1, Kind=ConfigMap"
	unbound        = "True InForce no binding names it: it judges nothing, as long as every binding can be read"
)

func TestConditions(t *testing.T) {
	a := newAPI(t)
	a.createPolicy(t, configMapPolicy("p", "c", "no"))
	first := a.waitForCondition(t, "p", "Ready", unbound)
	if got, want := condition(first, "Compiled"), "True Compiled every expression compiles"; got != want {
		t.Errorf("condition Compiled is %q, want %q", got, want)
	}
	a.waitForCondition(t, "p", "TypeChecked", fitsConfigMaps)

	// Ready means in force, the first time one looks.
	a.createBinding(t, newBinding("b", "p"))
	bound := a.waitForCondition(t, "p", "Ready", inForce)
	if got := verdict(a.review(t, configMapReview(t, "c"))); !strings.HasSuffix(got, "denied request: no") {
		t.Errorf("the policy is ready and the verdict is %q", got)
	}
	since := meta.FindStatusCondition(bound.Status.Conditions, "Ready").LastTransitionTime
	bound.Spec.Validations[0].Message = "still no"
	if _, err := a.policies().Update(t.Context(), bound, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.waitForCondition(t, "p", "TypeChecked", fitsConfigMaps) // nobody has anything left to write
	second := a.waitForCondition(t, "p", "Ready", inForce)
	if second.Generation != 2 {
		t.Fatalf("generation %d", second.Generation)
	}
	if got := verdict(a.review(t, configMapReview(t, "c"))); !strings.HasSuffix(got, "denied request: still no") {
		t.Errorf("generation 2 is ready and the verdict is %q", got)
	}
	if now := meta.FindStatusCondition(second.Status.Conditions, "Ready").LastTransitionTime; !now.Equal(&since) {
		t.Errorf("a transition at %s, and the status is the same since %s", now, since)
	}

	// Metadata is nothing to report about, and neither is a report.
	labelled, err := a.policies().Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.createPolicy(t, newPolicy("q"))
	a.waitForCondition(t, "q", "Ready", unbound)
	if got := a.getPolicy(t, "p"); got.ResourceVersion != labelled.ResourceVersion {
		t.Errorf("the policy was written again: %+v", got)
	}

	if err := a.bindings().Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	a.waitForCondition(t, "p", "Ready", unbound)
}

func TestKubectlWaitsForReady(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	a := newAPI(t)
	a.createBinding(t, newBinding("b", "p"))
	a.createPolicy(t, configMapPolicy("p", "c", "no"))
	home := t.TempDir()
	for _, args := range []string{"wait --for=condition=Ready pvap/p --timeout=30s", "get pvap"} {
		command := exec.CommandContext(t.Context(), kubectl, append(strings.Fields(args), "--kubeconfig", a.Kubeconfig)...)
		command.Env = append(os.Environ(), "HOME="+home)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v: %s", args, err, out)
		}
		if args == "get pvap" && !strings.Contains(string(out), "READY") {
			t.Errorf("kubectl %s says %s", args, out)
		}
	}
	if got := verdict(a.review(t, configMapReview(t, "c"))); got == "" {
		t.Error("the policy is ready and allows what it denies")
	}
}

// put stores an object behind the back of the server.
func put(t *testing.T, etcd *clientv3.Client, key string, value string) {
	t.Helper()
	if _, err := etcd.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

// TestUncompilablePolicies puts into etcd what no API server would accept now.
func TestUncompilablePolicies(t *testing.T) {
	a := newAPI(t)
	etcd := a.etcd(t)
	broken := func(name string, failurePolicy admissionregistrationv1.FailurePolicyType) string {
		p := configMapPolicy(name, name, "no")
		p.UID, p.Generation = types.UID("uid-of-"+name), 4
		p.Spec.FailurePolicy = &failurePolicy
		p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.spec.x("}}
		// Today's validation refuses more than the expression.
		p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "", Expression: "true"}}
		return string(encode(t, p))
	}
	for name, failurePolicy := range map[string]admissionregistrationv1.FailurePolicyType{"closed": "Fail", "open": "Ignore"} {
		a.createBinding(t, newBinding(name, name))
		put(t, etcd, policyKeys+name, broken(name, failurePolicy))
	}
	a.createBinding(t, newBinding("good", "good"))
	a.createPolicy(t, configMapPolicy("good", "", "good says no"))
	a.waitForCondition(t, "good", "Ready", inForce)

	closed := a.waitForCondition(t, "closed", "Ready", "False NotCompiled ")
	if got, want := condition(closed, "Ready"), "handled by its failurePolicy Fail"; !strings.HasSuffix(got, want) {
		t.Errorf("condition Ready is %q, want the end %q", got, want)
	}
	if got, want := condition(closed, "Compiled"), `False CompileFailed spec.validations[0].expression: Invalid value: "object.spec.x(": compilation failed: `; !strings.HasPrefix(got, want) {
		t.Errorf("condition Compiled is %q, want the beginning %q", got, want)
	}
	open := a.waitForCondition(t, "open", "Ready", "False NotCompiled ")
	if got, want := condition(open, "Ready"), "handled by its failurePolicy Ignore"; !strings.HasSuffix(got, want) {
		t.Errorf("condition Ready is %q, want the end %q", got, want)
	}

	const failed = "ValidatingAdmissionPolicy 'closed' with binding 'closed' denied request: compilation error: compilation failed: "
	if got := verdict(a.review(t, configMapReview(t, "closed"))); !strings.HasPrefix(got, failed) || !strings.HasSuffix(got, "(and 1 more: see causes)") {
		t.Errorf("a request that the policy with failurePolicy Fail matches: %q, want %q and one more", got, failed)
	}
	const good = "ValidatingAdmissionPolicy 'good' with binding 'good' denied request: good says no"
	for _, name := range []string{"open", "other"} {
		if got := verdict(a.review(t, configMapReview(t, name))); got != good {
			t.Errorf("ConfigMap %s: %q, want what the good policy says", name, got)
		}
	}
	if got := verdict(a.review(t, newReview(t, "Secret", "secrets", "closed", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"closed","namespace":"test"}}`))); got != "" {
		t.Errorf("a request that no policy matches: %q", got)
	}

	// It can be mended by a write.
	a.getAndUpdate(t, "closed", func(p *v1alpha1.ValidatingAdmissionPolicy) {
		p.Spec.Validations[0].Expression, p.Spec.MatchConditions = "true", nil
	})
	if mended := a.waitForCondition(t, "closed", "Ready", inForce); mended.Generation != 5 {
		t.Errorf("generation %d, want 5", mended.Generation)
	}
}

// getAndUpdate changes a policy, again if someone else has written it meanwhile.
func (a *api) getAndUpdate(t *testing.T, name string, change func(*v1alpha1.ValidatingAdmissionPolicy)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(ctx context.Context) (bool, error) {
		p := a.getPolicy(t, name)
		change(p)
		_, last = a.policies().Update(ctx, p, metav1.UpdateOptions{})
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(last)
	}
}

// TestConditionsOfManyPolicies starts a server with many policies: it is ready,
// answers reviews, and says soon what became of each.
func TestConditionsOfManyPolicies(t *testing.T) {
	const policies = 1000
	a := newAPI(t)
	etcd := a.etcd(t)
	var puts []clientv3.Op
	for i := range policies {
		p := configMapPolicy(fmt.Sprintf("p%04d", i), fmt.Sprintf("c%d", i), "no")
		p.UID, p.Generation = types.UID(fmt.Sprintf("uid-%d", i)), 1
		puts = append(puts, clientv3.OpPut(policyKeys+p.Name, string(encode(t, p))))
	}
	for batch := range slices.Chunk(puts, 100) {
		if _, err := etcd.Txn(t.Context()).Then(batch...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	a.createBinding(t, newBinding("b", "p0000"))
	a.Restart(t)
	a.connect(t)
	begin := time.Now()
	var slowest time.Duration
	ready := 0
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		asked := time.Now()
		if got := verdict(a.review(t, configMapReview(t, "c0"))); got == "" {
			t.Error("a request is allowed that a policy denies")
		}
		slowest = max(slowest, time.Since(asked))
		list, err := a.policies().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		ready = 0
		for i := range list.Items {
			if strings.HasPrefix(condition(&list.Items[i], "Ready"), "True") {
				ready++
			}
		}
		return ready == policies, nil
	})
	if err != nil {
		t.Fatalf("%d of %d policies are ready: %v", ready, policies, err)
	}
	t.Logf("%d policies are ready after %s; the slowest review took %s", policies, time.Since(begin), slowest)
}
