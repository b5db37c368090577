// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/cluster"
)

// TestKubeAPIServerKilled kills kube-apiserver and starts it again. The replicas judge
// on meanwhile, by what they know, and stay ready. Afterwards they judge by params as
// these are, and by policies that are new.
func TestKubeAPIServerKilled(t *testing.T) {
	s := newScene(t, "kube-apiserver-killed")
	s.storeLimit("5")
	s.store(s.newLimitPolicy())
	s.waitReady(s.namespace)
	doors := s.doors()
	for _, d := range doors {
		s.waitLimit(d, 5)
	}

	s.APIServer.Kill()
	for end := time.Now().Add(quickOr(3*time.Second, 30*time.Second)); time.Now().Before(end); {
		for i, d := range doors {
			if err := d.limits(t.Context(), s, 5); err != nil {
				t.Errorf("without kube-apiserver: %v", err)
			}
			if err := s.get(s.live()[i], "/readyz"); err != nil {
				t.Errorf("without kube-apiserver: %v", err)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := s.APIServer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	s.waitWhole()
	s.storeLimit("7")
	for _, d := range doors {
		s.waitLimit(d, 7)
	}
	s.storeDenials(1)
	for _, d := range doors {
		if denial, err := d.ask(t.Context(), s.limited("new", badKind(0), 1)); err != nil || denial != s.denial(0) {
			t.Errorf("a policy that is new: %s answers %q, %v", d.url, denial, err)
		}
	}
	t.Logf("after %s everything was in step", time.Since(back))
}

const limitName = "limit"

// newLimitPolicy is a policy that reads a ConfigMap.
func (s *scene) newLimitPolicy() (*v1alpha1.ValidatingAdmissionPolicy, *v1alpha1.ValidatingAdmissionPolicyBinding) {
	policy, binding := s.newPolicy(s.namespace, "!('size' in object.data) || int(object.data.size) <= int(params.data.max)")
	policy.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	deny := admissionregistrationv1.DenyAction
	binding.Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: limitName, Namespace: s.namespace, ParameterNotFoundAction: &deny}
	return policy, binding
}

// storeLimit writes the ConfigMap that the policy reads.
func (s *scene) storeLimit(limit string) {
	s.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: limitName}, Data: map[string]string{"max": limit}}
	s.wait("write the param", func(ctx context.Context) error {
		_, err := s.kube.CoreV1().ConfigMaps(s.namespace).Update(ctx, object, metav1.UpdateOptions{})
		if err != nil {
			_, err = s.kube.CoreV1().ConfigMaps(s.namespace).Create(ctx, object, metav1.CreateOptions{})
		}
		return err
	})
}

func (s *scene) limited(name, kind string, size int) *corev1.ConfigMap {
	object := s.configMap(name, kind)
	object.Data["size"] = fmt.Sprint(size)
	return object
}

// waitLimit waits until a replica judges by this limit.
func (s *scene) waitLimit(d *door, limit int) {
	s.Helper()
	s.wait("the param", func(ctx context.Context) error { return d.limits(ctx, s, limit) })
}

// limits is an error when the replica judges by another limit than this one.
func (d *door) limits(ctx context.Context, s *scene, limit int) error {
	if denial, err := d.ask(ctx, s.limited("fits", goodKind, limit)); err != nil || denial != "" {
		return fmt.Errorf("%s: size %d is answered %q, %w", d.url, limit, denial, err)
	}
	if denial, err := d.ask(ctx, s.limited("too-big", goodKind, limit+1)); err != nil || !strings.Contains(denial, "int(params.data.max)") {
		return fmt.Errorf("%s: size %d is answered %q, %w", d.url, limit+1, denial, err)
	}
	return nil
}

// get is an error when a replica does not answer 200.
func (s *scene) get(replica *cluster.Replica, path string) error {
	config := rest.CopyConfig(s.Config)
	config.CAData, config.Insecure = nil, true
	config.Timeout = 10 * time.Second
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "https://"+replica.Address+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s of %s: %s", path, replica.Identity, response.Status)
	}
	return nil
}
