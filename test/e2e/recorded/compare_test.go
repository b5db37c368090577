// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package recorded

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	webhook = "validations.policy.portcullis.dev"
	// wrapper is what kube-apiserver puts before the text of a webhook, in place of what
	// it puts before that of a policy of its own, `deployments.apps "nginx" is forbidden: `:
	// ToStatusErr in k8s.io/apiserver/pkg/admission/plugin/webhook/errors.
	wrapper = `admission webhook "` + webhook + `" denied the request: `
)

// compare says in what an answer, and the annotations of its audit event, differ from
// what was recorded.
func compare(want *want, got *answer, annotations map[string]string) []string {
	var differences []string
	differ := func(what string, got, want any) {
		differences = append(differences, fmt.Sprintf("%s: got %v, want %v", what, got, want))
	}
	if got.allowed() != *want.Allowed {
		differ("allowed", fmt.Sprintf("%t: %s", got.allowed(), got.status.Message), *want.Allowed)
	}
	if !*want.Allowed {
		if int32(got.code) != want.Code || got.status.Code != want.Code {
			differ("code", fmt.Sprintf("%d, in the Status %d", got.code, got.status.Code), want.Code)
		}
		if got.status.Reason != want.Reason {
			differ("reason", got.status.Reason, want.Reason)
		}
		causes := causesIn(got.status.Details)
		if text := denial(want.Message, len(causes)); strings.TrimRight(got.status.Message, "\n") != text {
			differ("message", got.status.Message, text)
		}
		if text := strings.TrimRight(want.Message, "\n"); len(causes) == 0 || causes[0] != text {
			differ("causes", causes, text)
		}
	}
	if !slices.Equal(got.warnings, want.Warnings) {
		differ("warnings", got.warnings, want.Warnings)
	}
	if want.AuditAnnotations != nil { // else they were not recorded
		if got, want := ofWebhook(annotations), wrapped(want.AuditAnnotations); !maps.Equal(got, want) {
			differ("audit annotations", got, want)
		}
	}
	return differences
}

// denial is what a user is told of a denial. A policy of kube-apiserver says no more
// than the first of them.
func denial(first string, denials int) string {
	text := wrapper + strings.TrimRight(first, "\n")
	if denials > 1 {
		text += fmt.Sprintf(" (and %d more: see causes)", denials-1)
	}
	return text
}

// causesIn are the texts of all denials.
func causesIn(details *metav1.StatusDetails) []string {
	if details == nil {
		return nil
	}
	var texts []string
	for _, cause := range details.Causes {
		texts = append(texts, strings.TrimRight(cause.Message, "\n"))
	}
	return texts
}

// wrapped are the keys that kube-apiserver makes of what a webhook returns: it drops
// those with a second slash, and so the slashes of the recorded keys become dots.
func wrapped(annotations map[string]string) map[string]string {
	all := map[string]string{}
	for key, value := range annotations {
		all[webhook+"/"+strings.ReplaceAll(key, "/", ".")] = value
	}
	return all
}

// ofWebhook leaves out what others wrote into an audit event. That a webhook could not
// be asked is kept: its key has another form.
func ofWebhook(annotations map[string]string) map[string]string {
	all := map[string]string{}
	for key, value := range annotations {
		if strings.Contains(key, webhook) || strings.Contains(value, webhook) {
			all[key] = value
		}
	}
	return all
}

// ours makes a text of the recorded API group one of the group that it is compared with.
var ours = strings.NewReplacer("admissionregistration.k8s.io", ourVersion.Group, `in version "v1"`, `in version "`+ourVersion.Version+`"`)

// tidy removes white space at the ends of lines, which does not count.
func tidy(checked *admissionregistrationv1.TypeChecking) []admissionregistrationv1.ExpressionWarning {
	if checked == nil {
		return nil
	}
	found := slices.Clone(checked.ExpressionWarnings)
	for i := range found {
		lines := strings.Split(found[i].Warning, "\n")
		for j := range lines {
			lines[j] = strings.TrimRight(lines[j], " \t")
		}
		found[i].Warning = strings.TrimRight(strings.Join(lines, "\n"), "\n")
	}
	return found
}
