// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package autogen

import (
	"slices"
	"strings"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

const (
	pod     = "Pod"
	cronJob = "CronJob"
)

// templated are the controllers that have a template of Pods in their spec, in the order
// in which rules name them, and as they do.
func templated() []string {
	return []string{
		"apps/v1/DaemonSet", "apps/v1/Deployment", "batch/v1/Job", "apps/v1/ReplicaSet",
		"v1/ReplicationController", "apps/v1/StatefulSet",
	}
}

// cronJobs are the controllers that have a template of controllers in their spec.
func cronJobs() []string { return []string{"batch/v1/CronJob"} }

// bare returns a kind without its group and version.
func bare(kind string) string { return kind[strings.LastIndex(kind, "/")+1:] }

// controllers are those for which rules are made.
type controllers struct {
	templated []string // of templated
	cronJob   bool
}

// controllersOf reads the annotation as Kyverno's computeRules does, which compares its
// items as they stand, spaces included, but looks for CronJob, and for the older word
// all, anywhere in it.
func controllersOf(annotations map[string]string) controllers {
	wanted, given := annotations[kyvernov1.AutogenControllersAnnotation]
	if !given {
		return controllers{templated: templated(), cronJob: true}
	}
	items := strings.Split(wanted, ",")
	if !slices.ContainsFunc(items, func(item string) bool { return item != "none" }) {
		return controllers{}
	}
	found := controllers{cronJob: strings.Contains(wanted, cronJob) || strings.Contains(wanted, "all")}
	others := func(item string) bool { return item != "all" && item != cronJob }
	all := slices.Contains(items, "all") && !slices.ContainsFunc(items, others)
	for _, kind := range templated() {
		if all || slices.Contains(items, bare(kind)) {
			found.templated = append(found.templated, kind)
		}
	}
	return found
}

// Controllers returns the kinds for which the annotation has rules made.
func Controllers(annotations map[string]string) []string {
	wanted := controllersOf(annotations)
	var kinds []string
	for _, kind := range wanted.templated {
		kinds = append(kinds, bare(kind))
	}
	if wanted.cronJob {
		kinds = append(kinds, cronJob)
	}
	return kinds
}

// Unknown returns the items of the annotation that do not stand for just one controller
// of Pods, for all, or for none.
func Unknown(annotations map[string]string) []string {
	wanted, given := annotations[kyvernov1.AutogenControllersAnnotation]
	if !given || wanted == "all" {
		return nil
	}
	known := []string{"none", cronJob}
	for _, kind := range templated() {
		known = append(known, bare(kind))
	}
	var unknown []string
	for item := range strings.SplitSeq(wanted, ",") {
		if !slices.Contains(known, item) {
			unknown = append(unknown, item)
		}
	}
	return unknown
}
