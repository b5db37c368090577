// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/autogen"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// What writers are told at most.
const (
	maxWarnings     = 10
	maxWarningItems = 5
	maxWarningItem  = 63 // bytes
)

const notApplied = "not applied, since its name is that of a rule made for the controllers of Pods, and such are made here"

// warnings says what of a policy is not applied.
func warnings(annotations map[string]string, rules []autogen.Rule) []string {
	var found []string
	if unknown := autogen.Unknown(annotations); len(unknown) > 0 {
		path := field.NewPath("metadata", "annotations").Key(kyvernov1.AutogenControllersAnnotation)
		made := cmp.Or(strings.Join(autogen.Controllers(annotations), ","), "none")
		found = append(found, fmt.Sprintf("%s: not understood as it stands: %s: the annotation is read as %q: write none, or kinds of DaemonSet, Deployment, Job, "+
			"ReplicaSet, ReplicationController, StatefulSet and CronJob, with a comma and no space between them", path, quoted(unknown), made))
	}
	for i := range rules {
		if rules[i].Replaced {
			found = append(found, fmt.Sprintf("%s: rule %s: %s: remove it, or rename it",
				field.NewPath("spec", "rules").Index(rules[i].From), quoted([]string{rules[i].Name}), notApplied))
		}
	}
	if left := len(found) - maxWarnings; left > 0 {
		found = append(found[:maxWarnings], fmt.Sprintf("%d more rules are not applied", left))
	}
	return found
}

func quoted(items []string) string {
	var shown []string
	for i, item := range items {
		if i == maxWarningItems {
			shown = append(shown, fmt.Sprintf("and %d more", len(items)-i))
			break
		}
		shown = append(shown, fmt.Sprintf("%q", item[:min(len(item), maxWarningItem)]))
	}
	return strings.Join(shown, ", ")
}
