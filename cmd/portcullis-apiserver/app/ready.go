// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/standalone"
)

const readyCallTimeout = time.Second

// readyPoll is how often the server is asked: soon at first, and seldom when it
// waits for etcd.
func readyPoll() wait.Backoff {
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.1, Steps: 50, Cap: 500 * time.Millisecond}
}

// announce waits until the administrator, with the kubeconfig that a user is
// given, finds the server ready, and says so in the log and on out.
func announce(ctx context.Context, env *standalone.Environment, out io.Writer) {
	config, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot tell when the server is ready", "kubeconfig", env.Kubeconfig)
		return
	}
	if waitUntilReady(ctx, config, env.URL) {
		klog.FromContext(ctx).Info("Ready", "url", env.URL, "kubeconfig", env.Kubeconfig)
		fmt.Fprintf(out, "portcullis-apiserver is ready at %s\nkubectl --kubeconfig %s get portcullis\n", env.URL, env.Kubeconfig)
	}
}

// waitUntilReady waits until the server at url is ready for the client of config. It
// returns false when ctx ends before.
func waitUntilReady(ctx context.Context, config *rest.Config, url string) bool {
	config = rest.CopyConfig(config)
	config.Timeout = readyCallTimeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot tell when the server is ready", "url", url)
		return false
	}
	defer client.CloseIdleConnections()
	return readyPoll().DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		return isReady(ctx, client, url), nil
	}) == nil
}

// isReady holds any fault for "not yet": the server may not be serving.
func isReady(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}
