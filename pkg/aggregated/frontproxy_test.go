// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func authentication(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: authenticationName}, Data: data}
}

// TestFrontProxyIsRequired: a cluster that does not say which proxies may name users
// is refused, whatever else it says.
func TestFrontProxyIsRequired(t *testing.T) {
	tests := []struct {
		name string
		data map[string]string
		want string
	}{
		{name: "named", data: map[string]string{clientCAKey: "PEM", allowedNamesKey: `["front-proxy-client"]`}},
		{name: "nothing", want: "it has no requestheader-client-ca-file"},
		{name: "no authority", data: map[string]string{allowedNamesKey: `["front-proxy-client"]`}, want: "it has no requestheader-client-ca-file"},
		{name: "no names", data: map[string]string{clientCAKey: "PEM"}, want: "it names no proxies"},
		{name: "empty names", data: map[string]string{clientCAKey: "PEM", allowedNamesKey: `[]`}, want: "it names no proxies"},
		{name: "one name is empty", data: map[string]string{clientCAKey: "PEM", allowedNamesKey: `["a",""]`}, want: "it names no proxies"},
		{name: "null", data: map[string]string{clientCAKey: "PEM", allowedNamesKey: `null`}, want: "it names no proxies"},
		{name: "no list", data: map[string]string{clientCAKey: "PEM", allowedNamesKey: `{}`}, want: "its requestheader-allowed-names is no list of names"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			client := fake.NewClientset(authentication(tc.data))
			err := waitForFrontProxy(t.Context(), client.CoreV1())
			if tc.want == "" {
				if err != nil {
					t.Errorf("got error %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "kube-system/"+authenticationName) {
				t.Errorf("got error %v, want one of the ConfigMap that says %q", err, tc.want)
			}
		})
	}
}

// TestForbiddenFrontProxyIsAnError: no waiting mends a missing right.
func TestForbiddenFrontProxyIsAnError(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), authenticationName, errors.New("no role"))
	})
	err := waitForFrontProxy(t.Context(), client.CoreV1())
	if err == nil || !strings.Contains(err.Error(), "extension-apiserver-authentication-reader") {
		t.Errorf("got error %v, want one that names the Role", err)
	}
}

// TestFrontProxyIsAwaited: kube-apiserver may come up after the server.
func TestFrontProxyIsAwaited(t *testing.T) {
	client := fake.NewClientset(authentication(map[string]string{clientCAKey: "PEM", allowedNamesKey: `["front-proxy-client"]`}))
	refused := 0
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refused < 1 {
			refused++
			return true, nil, errors.New("connection refused")
		}
		return false, nil, nil
	})
	if err := waitForFrontProxy(t.Context(), client.CoreV1()); err != nil || refused != 1 {
		t.Errorf("got error %v after %d refusals, want none after 1", err, refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	if err := waitForFrontProxy(ctx, client.CoreV1()); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that the context has ended", err)
	}
}
