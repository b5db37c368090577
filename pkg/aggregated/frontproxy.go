// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"
)

// The ConfigMap in which kube-apiserver tells the servers behind it how to know it:
// authenticationConfigMapName in k8s.io/apiserver/pkg/server/options.
const (
	authenticationName = "extension-apiserver-authentication"
	clientCAKey        = "requestheader-client-ca-file"
	allowedNamesKey    = "requestheader-allowed-names"
)

const (
	// lookPeriod is how often kube-apiserver is asked until it answers.
	lookPeriod = time.Second
	// lookTimeout bounds one question.
	lookTimeout = 10 * time.Second
	// complainEvery is of how many questions without an answer the log tells of one.
	complainEvery = 10
)

// waitForFrontProxy waits until kube-apiserver has told how to know its proxy. A
// server that does not know would believe whoever sends it a user's name.
func waitForFrontProxy(ctx context.Context, client corev1client.ConfigMapsGetter) error {
	asked := 0
	return wait.PollUntilContextCancel(ctx, lookPeriod, true, func(ctx context.Context) (bool, error) {
		found, err := lookUp(ctx, client)
		if err == nil {
			return true, checkFrontProxy(found)
		}
		if apierrors.IsForbidden(err) {
			return false, fmt.Errorf("%w: bind the Role extension-apiserver-authentication-reader in kube-system to this server", err)
		}
		if asked%complainEvery == 0 {
			klog.FromContext(ctx).Info("Waiting for kube-apiserver", "err", err)
		}
		asked++
		return false, nil
	})
}

func lookUp(ctx context.Context, client corev1client.ConfigMapsGetter) (*corev1.ConfigMap, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return client.ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationName, metav1.GetOptions{})
}

// checkFrontProxy refuses a cluster in which any certificate of an authority would
// do to speak for any user: without the names of the proxies, upstream's
// authenticator takes every name (k8s.io/apiserver/pkg/authentication/request/headerrequest).
func checkFrontProxy(found *corev1.ConfigMap) error {
	if found.Data[clientCAKey] == "" {
		return refusal("it has no " + clientCAKey + ": start kube-apiserver with --requestheader-client-ca-file")
	}
	var names []string
	if raw := found.Data[allowedNamesKey]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &names); err != nil {
			return refusal(fmt.Sprintf("its %s is no list of names: %v", allowedNamesKey, err))
		}
	}
	if len(names) > 0 && !slices.Contains(names, "") {
		return nil
	}
	return refusal("it names no proxies, so that every certificate of that authority would speak for every user: start kube-apiserver with --requestheader-allowed-names")
}

func refusal(why string) error {
	return errors.New("ConfigMap " + metav1.NamespaceSystem + "/" + authenticationName + " does not say whom to believe: " + why)
}
