// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/apiserver"
	"github.com/portcullis-dev/portcullis/test/etcdtest"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const (
	guard       = "guard.static.k8s.io"
	guardDenial = "ValidatingAdmissionPolicy 'guard.static.k8s.io' with binding 'guard.static.k8s.io' denied request: guarded"
	nameRefused = `metadata.name: Invalid value: "` + guard + `": names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API`
	bindRefused = `spec.policyName: Invalid value: "` + guard + `": names ending with ".static.k8s.io" are those of bootstrap policies, which only bindings in their directory bind`
)

// guarded is the directory of a bootstrap policy that denies every ConfigMap.
func guarded(t *testing.T) manifests {
	t.Helper()
	dir := manifests(t.TempDir())
	dir.writeGuard(t, "guarded")
	return dir
}

func (m manifests) writeGuard(t *testing.T, message string) {
	t.Helper()
	policy, binding := configMapPolicy(guard, "", message), newBinding(guard, guard)
	policy.APIVersion = admissionregistrationv1.SchemeGroupVersion.String()
	m.write(t, "guard.yaml", string(encode(t, policy))+"\n---\n"+string(encode(t, binding)))
}

// TestBootstrapFirst asks from the first moment on: there is an error or a denial,
// and never a verdict without the bootstrap policy.
func TestBootstrapFirst(t *testing.T) {
	a := newAPI(t, harness.WithBootstrapPolicies(string(guarded(t))), harness.WithoutWaiting())
	body, answers := configMapReview(t, "c"), 0
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		response, err := a.tryReview(ctx, body)
		if err != nil {
			return false, nil // the server is not there, or says that it cannot judge yet
		}
		if got := verdict(response); got != guardDenial {
			t.Errorf("answer %d is %q, want the denial", answers, got)
		}
		answers++
		return answers == 100, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBootstrap runs every test below on one server.
func TestBootstrap(t *testing.T) {
	dir := guarded(t)
	a := newAPI(t, harness.WithBootstrapPolicies(string(dir)))
	tests := []struct {
		name string
		run  func(*testing.T, *api, manifests)
	}{
		{"Writes", testBootstrapWrites},
		{"Apply", testBootstrapByKubectl},
		{"Preview", testBootstrapPreview},
		{"Leftovers", testBootstrapLeftovers},
		{"OwnGroup", testBootstrapOwnGroup},
		{"Metrics", testBootstrapMetrics},
		{"Reload", testBootstrapReload},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, a, dir)
			if got := verdict(a.review(t, configMapReview(t, "c"))); got != guardDenial {
				t.Errorf("the verdict has become %q", got)
			}
		})
	}
}

// testBootstrapWrites: nothing that a client writes has the name, and there is no
// object to change or delete.
func testBootstrapWrites(t *testing.T, a *api, _ manifests) {
	ctx := t.Context()
	policy, binding := configMapPolicy(guard, "", "no"), newBinding(guard, "p")
	policy.Spec.Validations[0].Expression = "true"
	applying := metav1.ApplyOptions{FieldManager: "test", Force: true}.ToPatchOptions()
	refused := map[string]func() error{
		"create a policy": func() error { _, err := a.policies().Create(ctx, policy, metav1.CreateOptions{}); return err },
		"create a policy, dry": func() error {
			_, err := a.policies().Create(ctx, policy, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		},
		"apply a policy": func() error {
			_, err := a.policies().Patch(ctx, guard, types.ApplyPatchType, encode(t, policy), applying)
			return err
		},
		"create a binding": func() error { _, err := a.bindings().Create(ctx, binding, metav1.CreateOptions{}); return err },
		"apply a binding": func() error {
			_, err := a.bindings().Patch(ctx, guard, types.ApplyPatchType, encode(t, binding), applying)
			return err
		},
	}
	for what, write := range refused {
		if err := write(); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), nameRefused) {
			t.Errorf("%s: got error %v, want 422 and\n%s", what, err, nameRefused)
		}
	}
	absent := map[string]func() error{
		"get": func() error { _, err := a.policies().Get(ctx, guard, metav1.GetOptions{}); return err },
		"update": func() error {
			changed := policy.DeepCopy()
			changed.ResourceVersion = "1"
			_, err := a.policies().Update(ctx, changed, metav1.UpdateOptions{})
			return err
		},
		"patch": func() error {
			_, err := a.policies().Patch(ctx, guard, types.MergePatchType, []byte(`{"spec":{"validations":[]}}`), metav1.PatchOptions{})
			return err
		},
		"delete": func() error { return a.policies().Delete(ctx, guard, metav1.DeleteOptions{}) },
	}
	for what, write := range absent {
		if err := write(); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got error %v, want 404", what, err)
		}
	}
	a.reset(t) // deletes all that is stored

	_, err := a.bindings().Create(ctx, newBinding("b", guard), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), bindRefused) {
		t.Errorf("a binding of the policy: got error %v, want 422", err)
	}
	a.createBinding(t, newBinding("b", "p"))
	_, err = a.bindings().Patch(ctx, "b", types.MergePatchType, []byte(`{"spec":{"policyName":"`+guard+`"}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), bindRefused) {
		t.Errorf("a binding that is changed to one of the policy: got error %v, want 422", err)
	}
	if err := a.bindings().Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func testBootstrapByKubectl(t *testing.T, a *api, _ manifests) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not installed")
	}
	manifest := writeFile(t, t.TempDir(), "guard.json", string(encode(t, configMapPolicy(guard, "", "no"))))
	for _, args := range [][]string{{"apply", "-f"}, {"apply", "--server-side", "-f"}, {"create", "-f"}} {
		command := exec.CommandContext(t.Context(), kubectl, append(append([]string{"--kubeconfig", a.Kubeconfig}, args...), manifest)...)
		if out, err := command.CombinedOutput(); err == nil || !strings.Contains(string(out), nameRefused) {
			t.Errorf("kubectl %v: %v: %s, want the refusal", args, err, out)
		}
	}
}

// testBootstrapPreview: a preview is judged as a request is, and no candidate takes
// the place of the policy.
func testBootstrapPreview(t *testing.T, a *api, _ manifests) {
	status := a.preview(t, configMapPreview())
	if status.Allowed || status.Result == nil || !strings.HasSuffix(status.Result.Message, guardDenial) {
		t.Errorf("the preview says %+v", status)
	}
	listed := false
	for _, evaluation := range status.Evaluations {
		listed = listed || evaluation.Policy.Name == guard && evaluation.Binding == guard
	}
	if !listed {
		t.Errorf("the policy is not among the evaluations: %+v", status.Evaluations)
	}
	spec := configMapPreview()
	harmless := configMapPolicy(guard, "", "no")
	harmless.Spec.Validations[0].Expression = "true"
	spec.Policies = candidates(t, harmless, newBinding("b", guard))
	_, err := a.client.PolicyV1alpha1().AdmissionPreviews().Create(t.Context(), &v1alpha1.AdmissionPreview{Spec: spec}, metav1.CreateOptions{})
	for _, want := range []string{"spec.policies[0]." + nameRefused, "spec.policies[1]." + bindRefused} {
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want 422 and\n%s", err, want)
		}
	}
}

// testBootstrapLeftovers puts into etcd what could be stored before the names were
// reserved.
func testBootstrapLeftovers(t *testing.T, a *api, _ manifests) {
	etcd := a.etcd(t)
	policy, binding, other := configMapPolicy(guard, "", "left over"), newBinding(guard, guard), newBinding("other", guard)
	policy.Spec.Validations[0].Expression = "true"
	warn := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
	policy.UID, binding.UID, other.UID = "uid-of-policy", "uid-of-binding", "uid-of-other"
	policy.Generation = 1
	binding.Spec.ValidationActions, other.Spec.ValidationActions = warn, warn
	put(t, etcd, policyKeys+guard, string(encode(t, policy)))
	put(t, etcd, bindingKeys+guard, string(encode(t, binding)))
	put(t, etcd, bindingKeys+"other", string(encode(t, other)))
	a.waitForCondition(t, guard, "Ready", "False Displaced a bootstrap policy of this name judges in its place: delete it")
	a.waitForCondition(t, guard, "TypeChecked", fitsConfigMaps) // nobody has anything left to write
	a.settle(t)
	response := a.review(t, configMapReview(t, "c"))
	if got := verdict(response); got != guardDenial || len(response.Warnings) > 0 {
		t.Errorf("the verdict is %q with warnings %q", got, response.Warnings)
	}
	stored := a.getPolicy(t, guard)
	stored.Labels = map[string]string{"a": "b"}
	if _, err := a.policies().Update(t.Context(), stored, metav1.UpdateOptions{}); err != nil {
		t.Errorf("it cannot be updated: %v", err)
	}
	for what, err := range map[string]error{
		"policy":        a.policies().Delete(t.Context(), guard, metav1.DeleteOptions{}),
		"binding":       a.bindings().Delete(t.Context(), guard, metav1.DeleteOptions{}),
		"other binding": a.bindings().Delete(t.Context(), "other", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Errorf("the %s cannot be deleted: %v", what, err)
		}
	}
	a.settle(t)
}

// testBootstrapOwnGroup: a policy that denies everything can still be dealt with.
func testBootstrapOwnGroup(t *testing.T, a *api, dir manifests) {
	const all = "deny-all.static.k8s.io"
	policy := configMapPolicy(all, "", "nothing goes")
	policy.Spec.MatchConstraints.ResourceRules[0].RuleWithOperations = admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{"*"},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
	}
	dir.write(t, "all.yaml", string(encode(t, policy))+"\n---\n"+string(encode(t, newBinding(all, all))))
	defer func() {
		dir.remove(t, "all.yaml")
		a.waitForVerdictOn(t, secretReview(t), "")
	}()
	a.waitForVerdictOn(t, secretReview(t), "ValidatingAdmissionPolicy 'deny-all.static.k8s.io' with binding 'deny-all.static.k8s.io' denied request: nothing goes")

	own := strings.NewReplacer(`"group":""`, `"group":"policy.portcullis.dev"`, `"version":"v1"`, `"version":"v1alpha1"`)
	review := newReview(t, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", "p", string(encode(t, newPolicy("p"))))
	if got := verdict(a.review(t, []byte(own.Replace(string(review))))); got != "" {
		t.Errorf("the write of a policy of our own is denied: %s", got)
	}
	a.createPolicy(t, newPolicy("p"))
	if err := a.policies().Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func testBootstrapMetrics(t *testing.T, a *api, _ manifests) {
	series := evaluationsOf(guard, "denied")
	before := a.scrape(t)
	a.review(t, configMapReview(t, "c"))
	after := a.scrape(t)
	if got := after[series] - before[series]; got != 1 {
		t.Errorf("%s: grew by %v, want 1", series, got)
	}
	for name, want := range map[string]float64{"portcullis_bootstrap_objects": 2, "portcullis_bootstrap_last_reload_success": 1} {
		if after[name] != want {
			t.Errorf("%s is %v, want %v", name, after[name], want)
		}
	}
}

// testBootstrapReload: a good change is in force soon, and a bad one is seen by
// operators alone.
func testBootstrapReload(t *testing.T, a *api, dir manifests) {
	review := configMapReview(t, "c")
	failures := `portcullis_bootstrap_reloads_total{result="failure"}`
	dir.writeGuard(t, "changed")
	a.waitForVerdictOn(t, review, strings.Replace(guardDenial, "guarded", "changed", 1))

	before := a.scrape(t)[failures]
	dir.write(t, "bad.yaml", string(encode(t, configMapPolicy("bad", "", "bad"))))
	waitFor(t, "the fault to be told of", func() bool { return a.scrape(t)[failures] == before+1 })
	if got, want := verdict(a.review(t, review)), strings.Replace(guardDenial, "guarded", "changed", 1); got != want {
		t.Errorf("the verdict is %q, want that of before", got)
	}
	dir.remove(t, "bad.yaml")
	dir.writeGuard(t, "guarded")
	a.waitForVerdictOn(t, review, guardDenial)
	if got := a.scrape(t)["portcullis_bootstrap_last_reload_success"]; got != 1 {
		t.Errorf("the last reload counts as %v", got)
	}
}

// TestBootstrapWithoutEtcd: the policies judge when all that is stored is lost, and
// can be changed then.
func TestBootstrapWithoutEtcd(t *testing.T) {
	t.Parallel()
	cluster, dir := etcdtest.Start(t, 1), guarded(t)
	e := newEtcdAPI(t, cluster, harness.WithBootstrapPolicies(string(dir)))
	cluster.Cut()
	waitFor(t, "etcd to be missed", func() bool {
		return e.do(t, request{method: http.MethodGet, path: "/healthz/etcd"}).code != http.StatusOK
	})
	if got := verdict(e.review(t, configMapReview(t, "c"))); got != guardDenial {
		t.Errorf("the verdict is %q", got)
	}
	dir.writeGuard(t, "changed")
	e.waitForVerdictOn(t, configMapReview(t, "c"), strings.Replace(guardDenial, "guarded", "changed", 1))
	cluster.Heal(t)
}

// TestBootstrapFaults: what is wrong with the manifests is said at once, before
// anything is started.
func TestBootstrapFaults(t *testing.T) {
	dir := guarded(t)
	dir.write(t, "a.yaml", string(encode(t, configMapPolicy("a", "", "no"))))
	dir.write(t, "b.yaml", string(encode(t, newBinding("b.static.k8s.io", "none.static.k8s.io"))))
	_, err := apiserver.LoadBootstrap(t.Context(), string(dir))
	for _, want := range []string{"--bootstrap-policies: ", "a.yaml: document 1, line 1: metadata.name: ", "b.yaml: document 1, line 1: spec.policyName: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %s", err, want)
		}
	}
}
