// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package offline is a view of a cluster that consists of manifests: what a
// kube-apiserver 1.36 serves by default, the namespaces that it makes itself,
// and the given objects, or those of a directory, which it can follow. What users
// may do follows from the RBAC objects among them. Custom resources have the
// defaults of their definitions, the kinds that run pods those of kube-apiserver. It
// does not ask a server, and validates nothing.
package offline

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/overlay"
)

// View is a cluster of manifests. It is immutable. Make one by New or Load.
type View struct{ cluster.View }

// New returns a cluster with the given objects. It treats them as overlay.New
// does and has the same errors. The namespaces default, kube-system,
// kube-public and kube-node-lease always exist, and so do the RBAC objects of a
// new cluster, such as the ClusterRole cluster-admin and its binding; a given
// object takes the place of one with the same name.
func New(objects []*unstructured.Unstructured) (*View, error) {
	empty, err := emptyCluster()
	if err != nil {
		return nil, fmt.Errorf("empty cluster: %w", err)
	}
	view, err := overlay.New(empty, objects)
	if err != nil {
		return nil, err
	}
	return &View{View: view}, nil
}

// emptyCluster is built once per process: it never changes, and a view is built
// for each preview.
//
//nolint:gochecknoglobals // A constant in effect.
var emptyCluster = sync.OnceValues(func() (cluster.View, error) {
	var namespaces []*unstructured.Unstructured
	// The system namespaces of k8s.io/kubernetes/pkg/controlplane.
	for _, name := range []string{corev1.NamespaceDefault, "kube-system", "kube-public", corev1.NamespaceNodeLease} {
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(name)
		namespaces = append(namespaces, namespace)
	}
	return overlay.New(newBare(), namespaces)
})
