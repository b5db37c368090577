// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// limited is a policy that takes a ConfigMap as its param.
const limited = `{paramKind: {apiVersion: v1, kind: ConfigMap}, matchConstraints: ` + onJudged + `,
  validations: [{expression: "size(object.metadata.name) <= int(params.data.max)", messageExpression: "'at most ' + params.data.max"}]}`

const noParams = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"

// TestParamAtOnce: a param that is made right before a request judges it, also when
// nobody found it a moment earlier.
func TestParamAtOnce(t *testing.T) {
	const repeats, workers, name = 100, 4, "at-once.example.com"
	enforce(t, name, limited, `{paramRef: {name: limit, parameterNotFoundAction: Deny}, matchResources: {namespaceSelector: {matchLabels: {at-once: 'yes'}}}}`)

	all := replicas(t)
	one := func(i int) error {
		namespace, limit := fmt.Sprintf("at-once-%d", i), []string{"3", "9"}[i%2]
		if _, err := admin.kube.CoreV1().Namespaces().Create(t.Context(), namespaceOf(namespace, map[string]string{"at-once": "yes"}), metav1.CreateOptions{}); err != nil {
			return err
		}
		if i%3 == 0 {
			if err := want(try(t.Context(), admin, namespace, "12345"), denial(name, noParams)); err != nil {
				return fmt.Errorf("before it is there: %w", err)
			}
		}
		if _, err := admin.kube.CoreV1().ConfigMaps(namespace).Create(t.Context(), configMap("limit", map[string]string{"max": limit}), metav1.CreateOptions{}); err != nil {
			return err
		}
		expected := ""
		if limit == "3" {
			expected = denial(name, "at most 3")
		}
		if err := everywhere(t, all, namespace, "12345", expected); err != nil {
			return fmt.Errorf("with the limit %s: %w", limit, err)
		}
		return admin.kube.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{})
	}
	inParallel(t, repeats, workers, one)
}

// TestConfigMapParams: what is judged follows the params, by name and by selector.
func TestConfigMapParams(t *testing.T) {
	const namespace, by = "limits", "limits.named.example.com"
	newNamespace(t, namespace, nil)
	enforce(t, by, limited, `{paramRef: {name: first, parameterNotFoundAction: Deny}}`)
	params := admin.kube.CoreV1().ConfigMaps(namespace)
	expect := func(when, text string) {
		t.Helper()
		eventually(t, "the verdict "+when, func(ctx context.Context) error { return want(try(ctx, admin, namespace, "12345"), text) })
	}
	store := func(name, limit string) {
		t.Helper()
		object := configMap(name, map[string]string{"max": limit})
		object.Labels = map[string]string{"limits": "yes"}
		_, err := params.Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			_, err = params.Update(t.Context(), object, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("without a param", denial(by, noParams))
	store("first", "9")
	expect("with a param", "")
	store("first", "3")
	expect("with a changed param", denial(by, "at most 3"))
	if err := params.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("when the param is gone", denial(by, noParams))
	rebind(t, by, `{"spec": {"paramRef": {"parameterNotFoundAction": "Allow"}}}`)
	expect("when that is allowed", "")

	rebind(t, by, `{"spec": {"paramRef": {"name": null, "selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"}}}`)
	expect("when none is selected", denial(by, noParams))
	store("first", "4")
	store("second", "9")
	expect("with two selected", denial(by, "at most 4"))
	store("second", "2")
	expect("when both deny", denial(by, "at most 4")+" (and 1 more: see causes)")
	if _, err := params.Patch(t.Context(), "first", types.MergePatchType, []byte(`{"metadata": {"labels": {"limits": null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("when one is not selected any more", denial(by, "at most 2"))
}

func rebind(t *testing.T, binding, patch string) {
	t.Helper()
	bindings := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings()
	if _, err := bindings.Patch(t.Context(), binding, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestSecretParams: Secrets are params only where an administrator lets the server read
// them. Otherwise the denial says what is missing, and failurePolicy Ignore admits.
func TestSecretParams(t *testing.T) {
	const namespace, strict, lenient = "keys", "keys.strict.example.com", "keys.lenient.example.com"
	newNamespace(t, namespace, nil)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"forbidden": "12345"}}
	const encoded = "MTIzNDU=" // as policies see what a Secret holds
	if _, err := admin.kube.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const failed = "failed expression: params.data.forbidden != '" + encoded + "' || object.metadata.name != '12345'"
	spec := func(failurePolicy string) string {
		return `{failurePolicy: ` + failurePolicy + `, paramKind: {apiVersion: v1, kind: Secret}, matchConstraints: ` + onJudged + `,
		  validations: [{expression: "` + strings.TrimPrefix(failed, "failed expression: ") + `"}]}`
	}
	const byName = `{paramRef: {name: key, parameterNotFoundAction: Deny}}`
	enforce(t, lenient, spec("Ignore"), byName)
	eventually(t, "what is ignored", func(ctx context.Context) error { return want(try(ctx, admin, namespace, "12345"), "") })
	enforce(t, strict, spec("Fail"), byName)
	refused := try(t.Context(), admin, namespace, "any")
	prefix := denial(strict, "failed to configure binding: paramKind kind `&ParamKind{APIVersion:v1,Kind:Secret,}` not yet synced to use for admission: ")
	const missing = `secrets is forbidden: User "system:serviceaccount:portcullis-system:portcullis" cannot list resource "secrets" in API group "" at the cluster scope`
	const advice = "; grant this server get, list and watch on secrets"
	if !strings.HasPrefix(refused, prefix) || !strings.Contains(refused, missing) || !strings.HasSuffix(refused, advice) {
		t.Errorf("got\n%s\nwant the missing right, and what to do", refused)
	}

	letRead(t, "keys-params", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch"}})
	eventually(t, "Secrets to be read", func(ctx context.Context) error { return want(try(ctx, admin, namespace, "any"), "") })
	if err := want(try(t.Context(), admin, namespace, "12345"), denial(lenient, failed)+" (and 1 more: see causes)"); err != nil {
		t.Error(err)
	}
}

// letRead gives the server rights to params, as an administrator does.
func letRead(t *testing.T, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	const sum = "portcullis:params"
	roles := admin.kube.RbacV1().ClusterRoles()
	before, err := roles.Get(t.Context(), sum, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"policy.portcullis.dev/aggregate-to-params": "true"}}, Rules: rules}
	if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ignoreAbsence(t, roles.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}))
	})
	eventually(t, "the right to read params", func(ctx context.Context) error {
		now, err := roles.Get(ctx, sum, metav1.GetOptions{})
		if err == nil && len(now.Rules) == len(before.Rules) {
			err = errors.New("the rules have not been added yet")
		}
		return err
	})
}
