// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

const howToMend = ": replace the whole object (kubectl replace) or delete it"

// TestPatchesOfDamage: a patch knows the parts that cannot be read no better than
// the server, and must not leave the object without them.
func TestPatchesOfDamage(t *testing.T) {
	a := newAPI(t)
	etcd := a.etcd(t)
	binding := newBinding("x", "x")
	binding.UID = "uid-of-x"
	binding.Spec.MatchResources = &admissionregistrationv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	damaged := strings.NewReplacer("v1alpha1", "v9", `"matchResources":{`, `"matchResources":7,"m":{`).Replace(string(encode(t, binding)))
	put(t, etcd, bindingKeys+"x", damaged)
	a.settleBindings(t)

	for _, test := range []struct {
		kind    types.PatchType
		patch   string
		options metav1.PatchOptions
	}{
		{types.MergePatchType, `{"spec":{"validationActions":["Warn"]}}`, metav1.PatchOptions{}},
		{types.MergePatchType, `{"metadata":{"annotations":null},"spec":{"validationActions":["Warn"]}}`, metav1.PatchOptions{}},
		{types.StrategicMergePatchType, `{"spec":{"validationActions":["Warn"]}}`, metav1.PatchOptions{}},
		{types.JSONPatchType, `[{"op":"remove","path":"/metadata/annotations"},{"op":"add","path":"/spec/validationActions","value":["Warn"]}]`, metav1.PatchOptions{}},
		{
			types.ApplyPatchType,
			`{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"x"},"spec":{"policyName":"x","validationActions":["Warn"]}}`,
			metav1.PatchOptions{FieldManager: "test", Force: new(true)},
		},
	} {
		_, err := a.bindings().Patch(t.Context(), "x", test.kind, []byte(test.patch), test.options)
		wantReason(t, err, metav1.StatusReasonInvalid)
		if err != nil && !strings.Contains(err.Error(), howToMend) {
			t.Errorf("%s %s: %v", test.kind, test.patch, err)
		}
	}
	shown, err := a.bindings().Get(t.Context(), "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shown.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
	_, err = a.bindings().Update(t.Context(), shown, metav1.UpdateOptions{})
	wantReason(t, err, metav1.StatusReasonInvalid)
	if got := inEtcd(t, etcd, bindingKeys+"x"); got != damaged {
		t.Fatalf("stored is %s", got)
	}

	binding.ResourceVersion = shown.ResourceVersion
	replaced, err := a.bindings().Update(t.Context(), binding, metav1.UpdateOptions{})
	if err != nil || stored.Damage(replaced) != nil || replaced.Spec.MatchResources.ObjectSelector == nil {
		t.Errorf("replaced it is %+v, %v", replaced, err)
	}
}

// TestNobodyOwnsTheMark: the mark of damage is taken from what a client writes,
// and from what it is said to manage.
func TestNobodyOwnsTheMark(t *testing.T) {
	a := newAPI(t)
	p, b := newPolicy("x"), newBinding("x", "x")
	p.Annotations = map[string]string{stored.UndecodableAnnotation: "x", "a": "b"}
	b.Annotations = map[string]string{stored.UndecodableAnnotation: "x", "a": "b"}
	p = a.createPolicy(t, p)
	b, err := a.bindings().Create(t.Context(), b, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	apply := `{"apiVersion":"policy.portcullis.dev/v1alpha1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"x","annotations":{"` +
		stored.UndecodableAnnotation + `":"y","c":"d"}},"spec":{"policyName":"x"}}`
	applied, err := a.bindings().Patch(t.Context(), "x", types.ApplyPatchType, []byte(apply), metav1.PatchOptions{FieldManager: "test", Force: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	for what, obj := range map[string]metav1.Object{"a created policy": p, "a created binding": b, "an applied binding": applied} {
		if _, marked := obj.GetAnnotations()[stored.UndecodableAnnotation]; marked {
			t.Errorf("%s has the mark", what)
		}
		managed := obj.GetManagedFields()
		if len(managed) == 0 {
			t.Errorf("%s has no managedFields", what)
		}
		for _, entry := range managed {
			if fields := entry.FieldsV1.GetRawString(); strings.Contains(fields, stored.UndecodableAnnotation) {
				t.Errorf("%s: %s owns the mark: %s", what, entry.Manager, fields)
			}
		}
	}
}

// TestKeysThatNoObjectHas: what was written to etcd under one is in force as
// damaged, and says how it can be removed, since no client can.
func TestKeysThatNoObjectHas(t *testing.T) {
	a := newAPI(t)
	etcd := a.etcd(t)
	a.createPolicy(t, configMapPolicy("x", "x", "no"))
	const (
		key    = bindingKeys + "a/b"
		remedy = "no object of the API can have its key: remove it with etcdctl del '" + key + "'"
	)
	put(t, etcd, key, "garbage")
	a.settleBindings(t)
	if got, want := verdict(a.review(t, configMapReview(t, "x"))), "ValidatingAdmissionPolicy 'x' with binding 'a:b' denied request: no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	list, err := a.bindings().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("listed are %+v, %v", list, err)
	}
	if damage := stored.Damage(&list.Items[0]); damage == nil || !strings.HasSuffix(damage.Error(), remedy) {
		t.Errorf("it says %v, want %s", damage, remedy)
	}
	if err := a.bindings().Delete(t.Context(), "a:b", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a deletion by the name that is shown: %v", err)
	}
	if _, err := etcd.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	a.settleBindings(t)
	if got := verdict(a.review(t, configMapReview(t, "x"))); got != "" {
		t.Errorf("once it is removed: %q", got)
	}
}

// TestLostBindingsLeaveConditionsAlone: it must not lead to a write of every
// policy.
func TestLostBindingsLeaveConditionsAlone(t *testing.T) {
	a := newAPI(t)
	a.createPolicy(t, configMapPolicy("x", "x", "no"))
	a.waitForCondition(t, "x", "Ready", unbound)
	before := a.waitForCondition(t, "x", "TypeChecked", fitsConfigMaps) // nobody has anything left to write
	put(t, a.etcd(t), bindingKeys+"x", "garbage")
	a.settleBindings(t)
	if got := verdict(a.review(t, configMapReview(t, "x"))); got != wholeDenial {
		t.Errorf("got %q, want %q", got, wholeDenial)
	}
	a.settle(t) // a write of the conditions would have come before that of the mark
	if after := a.getPolicy(t, "x"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was written: %+v", after)
	}
}

// TestStartWithDamage restarts a server on a store that is damaged everywhere: it
// is ready, judges by what can be read, and everything can be mended by kubectl.
func TestStartWithDamage(t *testing.T) {
	a := newAPI(t)
	etcd := a.etcd(t)
	a.createBinding(t, newBinding("good", "good"))
	a.createPolicy(t, configMapPolicy("good", "good", "good says no"))
	a.createBinding(t, newBinding("x", "x"))
	whole := wholePolicy(t)
	put(t, etcd, policyKeys+"x", strings.NewReplacer("v1alpha1", "v9", `"Ignore"`, `"Fail"`).Replace(whole))
	put(t, etcd, policyKeys+"y", "garbage that nobody binds")
	put(t, etcd, bindingKeys+"y", strings.Replace(string(encode(t, newBinding("y", "absent"))), "v1alpha1", "v9", 1))
	a.Restart(t)
	a.connect(t)

	if got := verdict(a.review(t, configMapReview(t, "good"))); got != goodDenial {
		t.Errorf("the good policy: %q", got)
	}
	if got := verdict(a.review(t, configMapReview(t, "x"))); !strings.HasPrefix(got, damagedBy) {
		t.Errorf("the damaged policy: %q", got)
	}
	if got := verdict(a.review(t, secretReview(t))); got != "" {
		t.Errorf("a request that no policy matches: %q", got)
	}
	list, err := a.policies().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events := a.watch(t, metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name=x"})

	// Nothing but the whole replaces it.
	_, err = a.policies().Patch(t.Context(), "x", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	wantReason(t, err, metav1.StatusReasonInvalid)
	if err != nil && !strings.Contains(err.Error(), howToMend) {
		t.Errorf("a patch of its labels: %v", err)
	}
	shown := a.getPolicy(t, "x")
	shown.Status.Conditions = nil
	_, err = a.policies().UpdateStatus(t.Context(), shown, metav1.UpdateOptions{})
	wantReason(t, err, metav1.StatusReasonInvalid)

	mended := configMapPolicy("x", "x", "no")
	if kubectl, err := exec.LookPath("kubectl"); err == nil {
		a.mendByKubectl(t, kubectl, string(encode(t, mended)))
	} else {
		mended.ResourceVersion = shown.ResourceVersion
		if _, err := a.policies().Update(t.Context(), mended, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	got := a.waitForCondition(t, "x", "Ready", inForce)
	if stored.Damage(got) != nil || got.Generation != 4 || got.UID != "uid-of-x" {
		t.Errorf("mended is %+v", got)
	}
	if got := verdict(a.review(t, configMapReview(t, "x"))); got != wholeDenial {
		t.Errorf("mended it says %q", got)
	}
	if event := wantEvent(t, events, "MODIFIED", "x"); stored.Damage(event) != nil {
		t.Errorf("watchers are told of %+v", event)
	}
	if err := a.policies().Delete(t.Context(), "y", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if err := a.bindings().Delete(t.Context(), "y", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func (a *api) mendByKubectl(t *testing.T, kubectl, manifest string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.json")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args, want string
		refused    bool
	}{
		{"get pvap", "False", false},
		{"get pvap x -o yaml", "policy.portcullis.dev/undecodable: ", false},
		{"describe pvap x", "CannotDecode", false},
		{"get pvapb y -o yaml", "policy.portcullis.dev/undecodable: ", false},
		{"label pvap x a=b", howToMend, true},
		{"apply -f " + path, howToMend, true},
		{"apply --server-side --force-conflicts -f " + path, howToMend, true},
		{"replace -f " + path, "replaced", false},
		{"apply -f " + path, "configured", false},
	} {
		command := exec.CommandContext(t.Context(), kubectl, append(strings.Fields(test.args), "--kubeconfig", a.Kubeconfig)...)
		command.Env = append(os.Environ(), "HOME="+dir)
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		if err := command.Run(); (err != nil) != test.refused || !strings.Contains(out.String(), test.want) {
			t.Errorf("kubectl %s: %v: %s", test.args, err, &out)
		}
		t.Logf("kubectl %s\n%s", test.args, &out)
	}
}
