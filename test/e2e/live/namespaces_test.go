// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestFreshNamespace: policies know a Namespace and its labels with the first request
// in it, also when they have been asked about it before it was there.
func TestFreshNamespace(t *testing.T) {
	const repeats, workers = 100, 4
	enforce(t, "fresh-expression.example.com",
		`{matchConstraints: `+onJudged+`, validations: [{expression: "namespaceObject.metadata.labels.tier == 'open'", message: it is closed}]}`,
		`{matchResources: {namespaceSelector: {matchLabels: {fresh: expression}}}}`)
	enforce(t, "fresh-selector.example.com",
		`{matchConstraints: `+onJudged+`, validations: [{expression: 'false', message: it is closed}]}`,
		`{matchResources: {namespaceSelector: {matchLabels: {fresh: selector, tier: closed}}}}`)

	all := replicas(t)
	one := func(i int) error {
		by, tier := []string{"expression", "selector"}[i%2], []string{"open", "closed"}[i/2%2]
		name := fmt.Sprintf("fresh-%d", i)
		if i%3 == 0 { // nobody is to remember that it was not there
			if _, err := preview(t.Context(), admin, previewOf(t, judged(name, "early"))); err != nil {
				return err
			}
		}
		namespace := namespaceOf(name, map[string]string{"fresh": by, "tier": tier})
		if _, err := admin.kube.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
		expected := ""
		if tier == "closed" {
			expected = denial("fresh-"+by+".example.com", "it is closed")
		}
		if err := everywhere(t, all, name, "first", expected); err != nil {
			return fmt.Errorf("by %s, in a namespace that is %s: %w", by, tier, err)
		}
		return admin.kube.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{})
	}
	inParallel(t, repeats, workers, one)
}

// TestChangedNamespace: what is judged follows the labels of a Namespace, and those of
// another one of the same name.
func TestChangedNamespace(t *testing.T) {
	const name = "changed"
	newNamespace(t, name, map[string]string{"tier": "closed"})
	enforce(t, name+".expression.example.com",
		`{matchConstraints: `+onJudged+`, validations: [{expression: "namespaceObject.metadata.labels.tier == 'open'"}]}`, `{}`)
	enforce(t, name+".selector.example.com",
		`{matchConstraints: {namespaceSelector: {matchLabels: {tier: shut}}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}, validations: [{expression: 'false'}]}`, `{}`)
	closed := denial(name+".expression.example.com", "failed expression: namespaceObject.metadata.labels.tier == 'open'")
	expect := func(when, text string) {
		t.Helper()
		eventually(t, "the verdict "+when, func(ctx context.Context) error { return want(try(ctx, admin, name, "any"), text) })
	}
	expect("at first", closed)
	relabel(t, name, "open")
	expect("when it is open", "")
	relabel(t, name, "shut")
	expect("when both deny", closed+" (and 1 more: see causes)")
	relabel(t, name, "closed")
	expect("when it is closed again", closed)

	if err := admin.kube.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to be made anew", func(ctx context.Context) error {
		_, err := admin.kube.CoreV1().Namespaces().Create(ctx, namespaceOf(name, map[string]string{"tier": "open"}), metav1.CreateOptions{})
		return err
	})
	expect("in another namespace of the same name", "")
}

func relabel(t *testing.T, namespace, tier string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {"tier": %q}}}`, tier)
	if _, err := admin.kube.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
