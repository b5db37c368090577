// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const (
	// wrapper is what kube-apiserver puts before the text of a webhook that denies.
	wrapper = `admission webhook "validations.policy.portcullis.dev" denied the request: `
	// patience is how long what happens soon may take on a busy machine.
	patience = time.Minute
	period   = 20 * time.Millisecond
)

// onJudged is what most policies of these tests are about: ConfigMaps with a label, and
// so not those that are params, nor those that controllers make.
const onJudged = `{resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}],
  objectSelector: {matchLabels: {judged: 'yes'}}}`

// inParallel does something so many times, with a number each time.
func inParallel(t *testing.T, times, workers int, do func(int) error) {
	t.Helper()
	var working sync.WaitGroup
	for worker := range workers {
		working.Go(func() {
			for i := worker; i < times; i += workers {
				if err := do(i); err != nil {
					t.Errorf("time %d: %v", i, err)
				}
			}
		})
	}
	working.Wait()
}

// eventually waits until look finds no fault.
func eventually(t *testing.T, what string, look func(ctx context.Context) error) {
	t.Helper()
	last := errors.New("nobody has looked")
	err := wait.PollUntilContextTimeout(t.Context(), period, patience, true, func(ctx context.Context) (bool, error) {
		if fault := look(ctx); fault == nil || ctx.Err() == nil {
			last = fault // what was wrong while there was time
		}
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %v", what, err, last)
	}
}

// want is a fault where two texts differ.
func want(got, want string) error {
	if got != want {
		return fmt.Errorf("got\n%s\nwant\n%s", got, want)
	}
	return nil
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

func newPolicy(t *testing.T, name, spec string) *v1alpha1.ValidatingAdmissionPolicy {
	t.Helper()
	policy := &v1alpha1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	decode(t, spec, &policy.Spec)
	return policy
}

// newBinding binds the policy of its name, with the action Deny, to the namespace that
// its name begins with, up to the first dot, unless spec says otherwise.
func newBinding(t *testing.T, name, spec string) *v1alpha1.ValidatingAdmissionPolicyBinding {
	t.Helper()
	binding := &v1alpha1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = name, []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	decode(t, spec, &binding.Spec)
	if binding.Spec.MatchResources == nil {
		namespace, _, _ := strings.Cut(name, ".")
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
		binding.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: selector}
	}
	return binding
}

// enforce stores a policy and a binding of the same name, and returns when both are in
// force. They go with the test.
func enforce(t *testing.T, name, policySpec, bindingSpec string) {
	t.Helper()
	storeBinding(t, newBinding(t, name, bindingSpec))
	storePolicy(t, newPolicy(t, name, policySpec))
}

// storePolicy returns when the policy is in force, and so are bindings stored before.
func storePolicy(t *testing.T, policy *v1alpha1.ValidatingAdmissionPolicy) {
	t.Helper()
	policies := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicies()
	if _, err := policies.Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ignoreAbsence(t, policies.Delete(context.WithoutCancel(t.Context()), policy.Name, metav1.DeleteOptions{}))
	})
	waitReady(t, policy.Name)
}

func storeBinding(t *testing.T, binding *v1alpha1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	bindings := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings()
	if _, err := bindings.Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ignoreAbsence(t, bindings.Delete(context.WithoutCancel(t.Context()), binding.Name, metav1.DeleteOptions{}))
	})
}

func waitReady(t *testing.T, policy string) {
	t.Helper()
	eventually(t, policy+" to be in force", func(ctx context.Context) error {
		got, err := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicies().Get(ctx, policy, metav1.GetOptions{})
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(got.Status.Conditions, "Ready")
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != got.Generation {
			return fmt.Errorf("generation %d: %+v", got.Generation, ready)
		}
		return nil
	})
}

func ignoreAbsence(t *testing.T, err error) {
	t.Helper()
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// newNamespace makes a namespace that goes with the test.
func newNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	namespaces := admin.kube.CoreV1().Namespaces()
	eventually(t, "a namespace to be made, of which an earlier one may be going", func(ctx context.Context) error {
		_, err := namespaces.Create(ctx, namespaceOf(name, labels), metav1.CreateOptions{})
		return err
	})
	t.Cleanup(func() {
		ignoreAbsence(t, namespaces.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
	})
}

func namespaceOf(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

// judged is an object that policies are about.
func judged(namespace, name string) *corev1.ConfigMap {
	object := configMap(name, nil)
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	object.Namespace, object.Labels = namespace, map[string]string{"judged": "yes"}
	return object
}

// try makes an object that policies are about by a dry run, and returns what p is told:
// nothing when it is admitted.
func try(ctx context.Context, p *person, namespace, name string) string {
	_, err := p.kube.CoreV1().ConfigMaps(namespace).Create(ctx, judged(namespace, name), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return told(err)
}

// told is what kube-apiserver says, without what it puts before the text of a webhook.
func told(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), wrapper)
}

// denial is what a policy with a binding of its name says.
func denial(name, text string) string {
	return fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", name, name, text)
}
