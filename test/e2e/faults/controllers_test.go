// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNamespaceIsDeleted: a namespace with objects goes away; kube-controller-manager
// asks all API groups what they have in it.
func TestNamespaceIsDeleted(t *testing.T) {
	s := newScene(t, "namespace-is-deleted")
	const name = "namespace-that-is-deleted"
	namespaces := s.kube.CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.run("", "-n", name, "create", "configmap", "content")
	s.run("", "-n", name, "create", "deployment", "content", "--image=content")
	s.wait("a Pod of the Deployment", func(ctx context.Context) error {
		pods, err := s.kube.CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait("the end of the namespace", func(ctx context.Context) error {
		left, err := namespaces.Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("it is still there: %+v", left.Status)
	})
}

// TestGarbageIsCollected: an object is deleted with its owner, among the built-in kinds
// and among those of Portcullis.
func TestGarbageIsCollected(t *testing.T) {
	s := newScene(t, "garbage-is-collected")
	configMaps := s.kube.CoreV1().ConfigMaps(s.namespace)
	owner, err := configMaps.Create(t.Context(), s.configMap("owner", goodKind), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	owned := s.configMap("owned", goodKind)
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	if _, err := configMaps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := configMaps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait("the end of the ConfigMap", func(ctx context.Context) error {
		_, err := configMaps.Get(ctx, owned.Name, metav1.GetOptions{})
		return gone(err)
	})

	policy, binding := s.newDenial(0)
	stored, err := s.policies.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding.OwnerReferences = []metav1.OwnerReference{{APIVersion: "policy.portcullis.dev/v1alpha1", Kind: "ValidatingAdmissionPolicy", Name: stored.Name, UID: stored.UID}}
	if _, err := s.policies.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.policies.ValidatingAdmissionPolicies().Delete(t.Context(), stored.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.wait("the end of the binding", func(ctx context.Context) error {
		_, err := s.policies.ValidatingAdmissionPolicyBindings().Get(ctx, binding.Name, metav1.GetOptions{})
		return gone(err)
	})
}

// TestOrphansStay: what a policy owns stays when its deletion says so, and nothing of
// it waits for a collector that does not come.
func TestOrphansStay(t *testing.T) {
	s := newScene(t, "orphans-stay")
	policy, _ := s.newDenial(0)
	policies, configMaps := s.policies.ValidatingAdmissionPolicies(), s.kube.CoreV1().ConfigMaps(s.namespace)
	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground} {
		stored, err := policies.Create(t.Context(), policy.DeepCopy(), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owned := s.configMap("owned", goodKind)
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "policy.portcullis.dev/v1alpha1", Kind: "ValidatingAdmissionPolicy", Name: stored.Name, UID: stored.UID}}
		if _, err := configMaps.Create(t.Context(), owned, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := policies.Delete(t.Context(), stored.Name, metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
			t.Fatal(err)
		}
		s.wait("the end of the policy, "+string(propagation), func(ctx context.Context) error {
			_, err := policies.Get(ctx, stored.Name, metav1.GetOptions{})
			return gone(err)
		})
		left, err := configMaps.Get(t.Context(), owned.Name, metav1.GetOptions{})
		if propagation == metav1.DeletePropagationForeground {
			s.wait("the end of the ConfigMap", func(ctx context.Context) error {
				_, err := configMaps.Get(ctx, owned.Name, metav1.GetOptions{})
				return gone(err)
			})
			continue
		}
		if err != nil || len(left.OwnerReferences) > 0 {
			t.Fatalf("the orphan: got owners %v, error %v", left.OwnerReferences, err)
		}
		if err := configMaps.Delete(t.Context(), owned.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestQuotaIsCounted: a ResourceQuota holds, and what is used is counted.
func TestQuotaIsCounted(t *testing.T) {
	s := newScene(t, "quota-is-counted")
	const counted = corev1.ResourceName("count/deployments.apps")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{counted: resource.MustParse("1")}},
	}
	quotas := s.kube.CoreV1().ResourceQuotas(s.namespace)
	if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	used := func(want int64) {
		t.Helper()
		s.wait("the count", func(ctx context.Context) error {
			found, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if have, ok := found.Status.Used[counted]; !ok || have.Value() != want {
				return fmt.Errorf("%v are used, want %d", found.Status.Used, want)
			}
			return nil
		})
	}
	used(0)
	deployments := s.kube.AppsV1().Deployments(s.namespace)
	if _, err := deployments.Create(t.Context(), deployment("first"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	used(1)
	if _, err := deployments.Create(t.Context(), deployment("second"), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "exceeded quota") {
		t.Errorf("got %v, want the quota exceeded", err)
	}
	if err := deployments.Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	used(0)
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
			},
		},
	}
}

// TestDiscoveryIsSound: kubectl finds all kinds without an error.
func TestDiscoveryIsSound(t *testing.T) {
	s := newScene(t, "discovery-is-sound")
	kinds := s.run("", "api-resources", "--cached=false", "--no-headers")
	if !strings.Contains(kinds, "policy.portcullis.dev/v1alpha1") || strings.Contains(kinds, "rror") {
		t.Errorf("kubectl api-resources says:\n%s", kinds)
	}
}
