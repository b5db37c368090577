// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rulesOf returns the defaults of a kind, in the order in which they are set. They
// are those of defaults.go in k8s.io/kubernetes/pkg/apis/{apps,batch,core}/v1, with
// the feature gates of kube-apiserver 1.36 as they are by default, the empty
// mappings that API servers write, and the generation of a new object.
func rulesOf(kind schema.GroupVersionKind) []rule {
	switch kind {
	case appsv1.SchemeGroupVersion.WithKind("Deployment"):
		return slices.Concat(deployment(), podTemplate("spec.template."))
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
		return slices.Concat(statefulSet(), podTemplate("spec.template."))
	case appsv1.SchemeGroupVersion.WithKind("DaemonSet"):
		return slices.Concat(daemonSet(), podTemplate("spec.template."))
	case appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):
		return slices.Concat([]rule{generation(), {"spec.replicas", int64(1)}}, podTemplate("spec.template."))
	case batchv1.SchemeGroupVersion.WithKind("Job"):
		return slices.Concat(job(), podTemplate("spec.template."))
	case batchv1.SchemeGroupVersion.WithKind("CronJob"):
		return slices.Concat(cronJob(), podTemplate("spec.jobTemplate.spec.template."))
	case corev1.SchemeGroupVersion.WithKind("Pod"):
		return slices.Concat([]rule{generation(), {"spec.enableServiceLinks", true}}, podSpec("spec."))
	default:
		return nil
	}
}

func generation() rule { return rule{"metadata.generation", int64(1)} }

func deployment() []rule {
	return []rule{
		generation(),
		{"spec.replicas", int64(1)},
		{"spec.strategy", map[string]any{}},
		{"spec.strategy.type", "RollingUpdate"},
		{"spec.strategy.rollingUpdate", where("type", "RollingUpdate", map[string]any{})},
		{"spec.strategy.rollingUpdate.maxUnavailable", "25%"},
		{"spec.strategy.rollingUpdate.maxSurge", "25%"},
		{"spec.revisionHistoryLimit", int64(10)},
		{"spec.progressDeadlineSeconds", int64(600)},
	}
}

func statefulSet() []rule {
	return []rule{
		generation(),
		{"spec.replicas", int64(1)},
		{"spec.podManagementPolicy", "OrderedReady"},
		{"spec.updateStrategy", map[string]any{}},
		// Unlike for the others, a given type keeps rollingUpdate away.
		{"spec.updateStrategy.rollingUpdate", where("type", nil, map[string]any{})},
		{"spec.updateStrategy.type", "RollingUpdate"},
		{"spec.updateStrategy.rollingUpdate.partition", int64(0)},
		{"spec.persistentVolumeClaimRetentionPolicy", map[string]any{}},
		{"spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Retain"},
		{"spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Retain"},
		{"spec.revisionHistoryLimit", int64(10)},
	}
}

func daemonSet() []rule {
	return []rule{
		generation(),
		{"spec.updateStrategy", map[string]any{}},
		{"spec.updateStrategy.type", "RollingUpdate"},
		{"spec.updateStrategy.rollingUpdate", where("type", "RollingUpdate", map[string]any{})},
		{"spec.updateStrategy.rollingUpdate.maxUnavailable", int64(1)},
		{"spec.updateStrategy.rollingUpdate.maxSurge", int64(0)},
		{"spec.revisionHistoryLimit", int64(10)},
	}
}

func job() []rule {
	return []rule{
		generation(),
		{"spec.completions", where("parallelism", nil, int64(1))},
		{"spec.parallelism", int64(1)},
		{"spec.backoffLimit", where("backoffLimitPerIndex", nil, int64(6))},
		{"spec.backoffLimit", int64(1<<31 - 1)},
		{"spec.completionMode", "NonIndexed"},
		{"spec.suspend", false},
		{"spec.podReplacementPolicy", where("podFailurePolicy", nil, "TerminatingOrFailed")},
		{"spec.podReplacementPolicy", "Failed"},
		{"spec.manualSelector", false},
	}
}

func cronJob() []rule {
	return []rule{
		generation(),
		{"spec.concurrencyPolicy", "Allow"},
		{"spec.suspend", false},
		{"spec.successfulJobsHistoryLimit", int64(3)},
		{"spec.failedJobsHistoryLimit", int64(1)},
		{"spec.jobTemplate.metadata", map[string]any{}},
	}
}

// podTemplate returns the defaults of the template of a pod at a path.
func podTemplate(at string) []rule {
	return append([]rule{{at + "metadata", map[string]any{}}}, podSpec(at+"spec.")...)
}

// podSpec returns the defaults of the spec of a pod at a path.
func podSpec(at string) []rule {
	rules := []rule{
		{at + "restartPolicy", "Always"},
		{at + "dnsPolicy", "ClusterFirst"},
		{at + "schedulerName", "default-scheduler"},
		{at + "securityContext", map[string]any{}},
		{at + "terminationGracePeriodSeconds", int64(30)},
	}
	for _, containers := range []string{"containers[].", "initContainers[]."} {
		rules = append(rules,
			rule{at + containers + "imagePullPolicy", choice(pullPolicy)},
			rule{at + containers + "terminationMessagePath", "/dev/termination-log"},
			rule{at + containers + "terminationMessagePolicy", "File"},
			rule{at + containers + "resources", map[string]any{}},
			rule{at + containers + "ports[].protocol", "TCP"},
			rule{at + containers + "env[].valueFrom.fieldRef.apiVersion", "v1"},
		)
	}
	return rules
}
