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
// the recording.
func compare(one *recording, got *answer, annotations map[string]string) []string {
	var differences []string
	differ := func(what string, got, want any) {
		differences = append(differences, fmt.Sprintf("%s: got %v, want %v", what, got, want))
	}
	if got.allowed() != *one.Want.Allowed {
		differ("allowed", fmt.Sprintf("%t: %s", got.allowed(), got.status.Message), *one.Want.Allowed)
	}
	if one.Want.Code != 0 {
		want := denial(&one.Want)
		if int32(got.code) != want.Code || got.status.Code != want.Code {
			differ("code", fmt.Sprintf("%d, in the Status %d", got.code, got.status.Code), want.Code)
		}
		if got.status.Reason != want.Reason {
			differ("reason", got.status.Reason, want.Reason)
		}
		if strings.TrimRight(got.status.Message, "\n") != want.Message {
			differ("message", got.status.Message, want.Message)
		}
		// The text of the policy itself is in the Status, too.
		if text := strings.TrimRight(one.Want.Message, "\n"); !slices.Equal(causes(got.status.Details), []string{text}) {
			differ("causes", causes(got.status.Details), text)
		}
	}
	if !slices.Equal(got.warnings, one.Want.Warnings) {
		differ("warnings", got.warnings, one.Want.Warnings)
	}
	if got, want := ofWebhook(annotations), wrapped(one.Want.AuditAnnotations); !maps.Equal(got, want) {
		differ("audit annotations", got, want)
	}
	return differences
}

func causes(details *metav1.StatusDetails) []string {
	if details == nil {
		return nil
	}
	var texts []string
	for _, cause := range details.Causes {
		texts = append(texts, strings.TrimRight(cause.Message, "\n"))
	}
	return texts
}

// denial is the Status of a webhook that denies as the recorded policy did.
func denial(want *want) metav1.Status {
	return metav1.Status{Code: want.Code, Reason: want.Reason, Message: wrapper + strings.TrimRight(want.Message, "\n")}
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
