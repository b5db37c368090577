// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/hack/internal/objects"
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"

	inForceTimeout = 30 * time.Second
	inForcePoll    = 50 * time.Millisecond
)

// served is the version of the policies of the server.
func served() schema.GroupVersion {
	return schema.GroupVersion{Group: "policy.portcullis.dev", Version: "v1alpha1"}
}

// storePolicies stores the objects of file and waits until all policies judge
// what ask asks.
func storePolicies(ctx context.Context, config *rest.Config, file string, ask func(context.Context) error, out io.Writer) error {
	found, err := readPolicies(file)
	if err != nil {
		return err
	}
	store, err := objects.Open(config)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, object := range found {
		if err := store.Create(ctx, object); err != nil {
			return fmt.Errorf("store %s %s of %s: %w", object.GetKind(), object.GetName(), file, err)
		}
		if object.GetKind() == policyKind {
			names[object.GetName()] = true
		}
	}
	if err := awaitJudgement(ctx, config, names, ask); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d policies of %s judge the review.\n", len(names), file)
	return nil
}

// readPolicies returns the policies and bindings of a file, in our group.
func readPolicies(file string) ([]*unstructured.Unstructured, error) {
	found, err := objects.Read(file)
	if err != nil {
		return nil, err
	}
	for _, object := range found {
		if kind := object.GetKind(); kind != policyKind && kind != bindingKind {
			return nil, fmt.Errorf("%s: kind %q is neither %s nor %s", file, kind, policyKind, bindingKind)
		}
		object.SetAPIVersion(served().String())
	}
	return found, nil
}

// awaitJudgement asks until each of the policies has judged a question: one that
// did not would be measured as if it cost nothing.
func awaitJudgement(ctx context.Context, config *rest.Config, names map[string]bool, ask func(context.Context) error) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	missing := ""
	err = wait.PollUntilContextTimeout(ctx, inForcePoll, inForceTimeout, true, func(ctx context.Context) (bool, error) {
		if err := ask(ctx); err != nil {
			missing = err.Error() // the verdict is not that of all policies yet
			return false, nil
		}
		metrics, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return false, err
		}
		missing = firstIdle(metrics, names)
		return missing == "", nil
	})
	if wait.Interrupted(err) && missing != "" {
		return fmt.Errorf("after %s not all policies judge the review: %s", inForceTimeout, missing)
	}
	return err
}

// firstIdle names a policy that has evaluated nothing, or returns "".
func firstIdle(metrics []byte, names map[string]bool) string {
	evaluated := regexp.MustCompile(`(?m)^portcullis_policy_evaluations_total\{[^}]*outcome="(allowed|audited|warned|denied)",policy="([^"]*)"\} [1-9]`)
	busy := map[string]bool{}
	for _, found := range evaluated.FindAllSubmatch(metrics, -1) {
		busy[string(found[2])] = true
	}
	for name := range names {
		if !busy[name] {
			return name + " has not evaluated it"
		}
	}
	return ""
}
