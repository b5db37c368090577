// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin is what every cluster of kube-apiserver 1.36 has: the table of
// resources that it serves when no API is switched on or off, all stable
// versions, no alpha and no beta ones; the schemas of their kinds; and the RBAC
// objects that it makes itself. It does not know custom resources.
package builtin

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/discovery"
)

// table is built once per process: it never changes, and a view is built for
// each preview.
//
//nolint:gochecknoglobals // A constant in effect.
var table = sync.OnceValue(func() *discovery.Table {
	return discovery.NewTable(resources())
})

// Table returns the built-in resources, in the order of discovery.
func Table() *discovery.Table { return table() }

// resources has the groups and versions of DefaultAPIResourceConfigSource in
// k8s.io/kubernetes/pkg/controlplane and those of the apiextensions and
// aggregator servers. Only subresources that more than one resource serves are
// listed, since no other can have an equivalent.
func resources() []discovery.Resource {
	var r list
	r.namespaced("v1", "Binding", "ConfigMap", "Endpoints", "Event", "LimitRange",
		"PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController",
		"ResourceQuota", "Secret", "Service", "ServiceAccount")
	r.clusterScoped("v1", "ComponentStatus", "Namespace", "Node", "PersistentVolume")
	r.clusterScoped("apiregistration.k8s.io/v1", "APIService")
	r.namespaced("apps/v1", "ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
	r.namespaced("events.k8s.io/v1", "Event")
	r.clusterScoped("authentication.k8s.io/v1", "SelfSubjectReview", "TokenReview")
	r.namespaced("authorization.k8s.io/v1", "LocalSubjectAccessReview")
	r.clusterScoped("authorization.k8s.io/v1", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview")
	r.namespaced("autoscaling/v2", "HorizontalPodAutoscaler")
	r.namespaced("autoscaling/v1", "HorizontalPodAutoscaler")
	r.namespaced("batch/v1", "CronJob", "Job")
	r.clusterScoped("certificates.k8s.io/v1", "CertificateSigningRequest")
	r.namespaced("networking.k8s.io/v1", "Ingress", "NetworkPolicy")
	r.clusterScoped("networking.k8s.io/v1", "IngressClass", "IPAddress", "ServiceCIDR")
	r.namespaced("policy/v1", "PodDisruptionBudget")
	r.namespaced("rbac.authorization.k8s.io/v1", "Role", "RoleBinding")
	r.clusterScoped("rbac.authorization.k8s.io/v1", "ClusterRole", "ClusterRoleBinding")
	r.namespaced("storage.k8s.io/v1", "CSIStorageCapacity")
	r.clusterScoped("storage.k8s.io/v1", "CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass")
	r.clusterScoped("admissionregistration.k8s.io/v1",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration")
	r.clusterScoped("apiextensions.k8s.io/v1", "CustomResourceDefinition")
	r.clusterScoped("scheduling.k8s.io/v1", "PriorityClass")
	r.namespaced("coordination.k8s.io/v1", "Lease")
	r.clusterScoped("node.k8s.io/v1", "RuntimeClass")
	r.namespaced("discovery.k8s.io/v1", "EndpointSlice")
	r.namespaced("resource.k8s.io/v1", "ResourceClaim", "ResourceClaimTemplate")
	r.clusterScoped("resource.k8s.io/v1", "DeviceClass", "ResourceSlice")
	r.clusterScoped("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "PriorityLevelConfiguration")
	return r
}

// Storage returns the resource with which another one shares its objects, as
// AddCohabitatingResources in k8s.io/kubernetes/pkg/kubeapiserver tells it, or the
// empty one when it shares them with its other versions only.
func Storage(resource schema.GroupResource) schema.GroupResource {
	if resource == (schema.GroupResource{Group: "events.k8s.io", Resource: "events"}) {
		return schema.GroupResource{Resource: "events"}
	}
	return schema.GroupResource{}
}

type list []discovery.Resource

func (l *list) namespaced(groupVersion string, kinds ...string) {
	for _, kind := range kinds {
		l.add(schema.FromAPIVersionAndKind(groupVersion, kind), true)
	}
}

func (l *list) clusterScoped(groupVersion string, kinds ...string) {
	for _, kind := range kinds {
		l.add(schema.FromAPIVersionAndKind(groupVersion, kind), false)
	}
}

func (l *list) add(kind schema.GroupVersionKind, namespaced bool) {
	// The guess is right for every built-in kind; a test compares them all.
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	resource := discovery.Resource{Resource: plural, Kind: kind, Namespaced: namespaced}
	resource.Storage = Storage(plural.GroupResource())
	if kind.GroupKind() == (schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}) {
		resource.Subresources = map[string]schema.GroupVersionKind{"status": kind}
	}
	*l = append(*l, resource)
}
