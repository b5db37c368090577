// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/hack/bench/unmatched"
	"github.com/portcullis-dev/portcullis/hack/internal/objects"
)

const (
	policyKind        = "ValidatingAdmissionPolicy"
	bindingKind       = "ValidatingAdmissionPolicyBinding"
	clusterPolicyKind = "ClusterPolicy"

	inForceTimeout = 30 * time.Second
	inForcePoll    = 50 * time.Millisecond
)

// served is the version of the policies of the server.
func served() schema.GroupVersion {
	return schema.GroupVersion{Group: "policy.portcullis.dev", Version: "v1alpha1"}
}

// storePolicies stores the policies, and as many beside them as are wanted that do not
// match, and waits until all of the former judge what ask asks.
func storePolicies(ctx context.Context, config *rest.Config, o *options, beside int, ask func(context.Context) error, out io.Writer) error {
	file := o.policies
	found, err := readPolicies(file, o.phase)
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	store, err := objects.Open(config)
	if err != nil {
		return err
	}
	for i := range beside {
		object := unmatched.Policy(i)
		if err := store.Create(ctx, object); err != nil {
			return fmt.Errorf("store %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	names := map[string]bool{}
	for _, object := range found {
		if err := store.Create(ctx, object); err != nil {
			return fmt.Errorf("store %s %s of %s: %w", object.GetKind(), object.GetName(), file, err)
		}
		if object.GetKind() != bindingKind {
			names[object.GetName()] = true
		}
	}
	complaint := func(metrics []byte) string {
		return cmp.Or(firstIdle(metrics, names, o.phase), firstMatched(metrics, beside))
	}
	if err := awaitJudgement(ctx, config, complaint, ask); err != nil {
		return err
	}
	does := map[string]string{phaseValidate: "judge", phaseMutate: "change the object of"}[o.phase]
	fmt.Fprintf(out, "%d policies of %s %s the review, and %d beside them do not match.\n", len(names), file, does, beside)
	return nil
}

// readPolicies returns the policies and bindings of a file for a phase, in our group.
func readPolicies(file, phase string) ([]*unstructured.Unstructured, error) {
	kinds := []string{policyKind, bindingKind}
	if phase == phaseMutate {
		kinds = []string{clusterPolicyKind}
	}
	found, err := objects.Read(file)
	if err != nil {
		return nil, err
	}
	for _, object := range found {
		if kind := object.GetKind(); !slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("%s: kind %q cannot be measured in the phase %s, only %s", file, kind, phase, strings.Join(kinds, " and "))
		}
		object.SetAPIVersion(served().String())
	}
	return found, nil
}

// awaitJudgement asks until there is no complaint about the metrics: a policy that has
// not judged the question, or not changed its object, would be measured as if it cost
// nothing.
func awaitJudgement(ctx context.Context, config *rest.Config, complaint func(metrics []byte) string, ask func(context.Context) error) error {
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
		missing = complaint(metrics)
		return missing == "", nil
	})
	if err != nil && missing != "" {
		// Near the end the client rather says that it would have to wait for too long.
		return fmt.Errorf("after %s not all policies do with the review what they should: %s: %w", inForceTimeout, missing, err)
	}
	return err
}

// firstIdle names a policy that has evaluated nothing, or changed nothing, or returns "".
func firstIdle(metrics []byte, names map[string]bool, phase string) string {
	outcomes, missing := "allowed|audited|warned|denied", " has not evaluated it"
	if phase == phaseMutate {
		outcomes, missing = "changed|mutated", " has not changed it"
	}
	evaluated := regexp.MustCompile(`(?m)^portcullis_policy_evaluations_total\{[^}]*outcome="(` + outcomes + `)",policy="([^"]*)"\} [1-9]`)
	busy := map[string]bool{}
	for _, found := range evaluated.FindAllSubmatch(metrics, -1) {
		busy[string(found[2])] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !busy[name] {
			return name + missing
		}
	}
	return ""
}

// firstMatched names a policy of those that are not to match, and does, or says how many
// of them are not in force yet, or returns "".
func firstMatched(metrics []byte, installed int) string {
	counted := regexp.MustCompile(`(?m)^portcullis_policy_evaluations_total\{[^}]*outcome="([^"]*)",policy="([^"]*` + unmatched.Prefix + `[0-9]+)"\} ([0-9])`)
	inForce := map[string]bool{}
	for _, found := range counted.FindAllSubmatch(metrics, -1) {
		outcome, name, count := string(found[1]), string(found[2]), string(found[3])
		if outcome != "notmatched" && count != "0" {
			return name + " matches"
		}
		inForce[name] = true
	}
	if len(inForce) < installed {
		return fmt.Sprintf("%d of %d that do not match are in force", len(inForce), installed)
	}
	return ""
}
