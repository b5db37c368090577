// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recorded is what kube-apiserver itself has made. Record it again, from a fresh
// one, with hack/rbacanswers.
//
//go:embed rbac.jsonl
var recorded string

// objects are decoded once per process, when they are first asked for: most
// processes never do.
//
//nolint:gochecknoglobals // A constant in effect.
var objects = sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
	return decode(recorded)
})

// RBAC returns the Roles, ClusterRoles and their bindings that every cluster with
// RBAC has, by kind, namespace and name. Those of the add-ons of a
// distribution, such as kubeadm, are not among them. The result belongs to all
// callers.
func RBAC() ([]*unstructured.Unstructured, error) {
	all, err := objects()
	return slices.Clip(all), err
}

func decode(lines string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	number := 0
	for line := range strings.Lines(lines) {
		if number++; strings.HasPrefix(line, "#") {
			continue
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(line)); err != nil {
			return nil, fmt.Errorf("rbac.jsonl, line %d: %w", number, err)
		}
		all = append(all, obj)
	}
	return all, nil
}
