// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"

	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

// status says what the API server would answer.
func status(req *request.Request, answer *verdict.Verdict) policyapi.AdmissionPreviewStatus {
	out := policyapi.AdmissionPreviewStatus{
		Allowed:          answer.Allowed,
		Result:           answer.ForbiddenStatus(groupResource(req), req.DisplayName()),
		Warnings:         headers(answer.Warnings),
		AuditAnnotations: answer.AuditAnnotations,
		Evaluations:      make([]policyapi.Evaluation, 0, len(answer.Evaluations)),
	}
	if req.Object != nil {
		out.Object = &runtime.RawExtension{Object: req.Object}
	}
	for i := range answer.Evaluations {
		out.Evaluations = append(out.Evaluations, evaluation(&answer.Evaluations[i]))
	}
	showMutation(&out, req, answer)
	if answer.Unlisted > 0 {
		out.Evaluations = append(out.Evaluations, policyapi.Evaluation{
			Outcome: policyapi.OutcomeNotMatched,
			WhyNot:  fmt.Sprintf("and %d more policies or bindings that do not match", answer.Unlisted),
		})
	}
	return out
}

func evaluation(in *verdict.Evaluation) policyapi.Evaluation {
	out := policyapi.Evaluation{
		Policy:     policyapi.PolicyReference(in.Policy),
		Binding:    in.Binding,
		Phase:      phase(in),
		Outcome:    outcome(in.Outcome),
		Rule:       in.Finding.Rule,
		Expression: in.Finding.Expression,
		Message:    message(in),

		DurationMicroseconds: in.Took.Microseconds(),
	}
	switch {
	case in.Outcome == verdict.Unmatched || in.Outcome == verdict.Skipped:
		out.WhyNot, out.Message = out.Message, ""
	case in.Outcome == verdict.Failed && in.OnError == verdict.Ignore:
		out.WhyNot = "failurePolicy Ignore: the error does not count"
	}
	if trace := in.Finding.Trace; trace != nil {
		out.Cost = int64(min(trace.Cost, math.MaxInt64))
		if trace.Took > 0 || trace.Concealed != "" {
			out.DurationMicroseconds = trace.Took.Microseconds()
		}
		out.Values = values(trace.Values)
	}
	if in.Param != nil {
		param := policyapi.ObjectReference(*in.Param)
		out.Param = &param
	}
	return out
}

// phase is the part of judgement that an evaluation belongs to.
func phase(in *verdict.Evaluation) string {
	if in.Mutates {
		return "Mutate"
	}
	return "Validate"
}

// message returns the text of a finding. Whoever sends the request is told those of
// denials and warnings; of others they are told only what they may read.
func message(in *verdict.Evaluation) string {
	if in.Outcome == verdict.Denied || in.Outcome == verdict.Warned {
		return in.Finding.Message
	}
	return in.Finding.Shown(in.Finding.Message)
}

func values(in map[string]json.RawMessage) map[string]apiextensionsv1.JSON {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]apiextensionsv1.JSON, len(in))
	for expression, value := range in {
		out[expression] = apiextensionsv1.JSON{Raw: value}
	}
	return out
}

func outcome(in verdict.Outcome) policyapi.EvaluationOutcome {
	switch in {
	case verdict.Passed:
		return policyapi.OutcomeAllowed
	case verdict.Denied:
		return policyapi.OutcomeDenied
	case verdict.Warned:
		return policyapi.OutcomeWarned
	case verdict.Audited:
		return policyapi.OutcomeAudited
	case verdict.Changed:
		return policyapi.OutcomeMutated
	case verdict.Skipped:
		return policyapi.OutcomeSkipped
	case verdict.Unmatched:
		return policyapi.OutcomeNotMatched
	case verdict.Failed:
		return policyapi.OutcomeError
	}
	return policyapi.OutcomeError
}

func groupResource(req *request.Request) schema.GroupResource {
	return req.RequestResource.GroupResource()
}

const (
	maxWarningRunes    = 4 * 1024 // of all warnings of a response together
	cutWarningsToRunes = 256      // each, when all together are too long
	warningCode        = 299
)

// headers returns those warnings that reach a client, as the recorder of
// k8s.io/apiserver/pkg/endpoints/filters/warning.go sends them: each text once
// and none with characters that a header cannot carry. When together they are
// too long, all are cut, and what follows the one that was too much is sent
// while there is room.
func headers(warnings []string) []string {
	texts := distinct(warnings)
	over := firstOver(texts)
	var sent []string
	runes := 0
	for i, text := range texts {
		if i > over && runes >= maxWarningRunes {
			break
		}
		if over < len(texts) {
			text = cut(text, cutWarningsToRunes)
		}
		if fitsHeader(text) {
			sent = append(sent, text)
			runes += utf8.RuneCountInString(text)
		}
	}
	return sent
}

func distinct(warnings []string) []string {
	seen := map[string]bool{"": true}
	var texts []string
	for _, text := range warnings {
		if !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	return texts
}

// firstOver returns the index of the first text for which there is no room, or
// the number of texts when there is room for all.
func firstOver(texts []string) int {
	runes := 0
	for i, text := range texts {
		if !fitsHeader(text) {
			continue
		}
		if runes += utf8.RuneCountInString(text); runes > maxWarningRunes {
			return i
		}
	}
	return len(texts)
}

func cut(text string, toRunes int) string {
	if len(text) <= toRunes || utf8.RuneCountInString(text) <= toRunes {
		return text
	}
	return string([]rune(text)[:toRunes])
}

func fitsHeader(text string) bool {
	_, err := net.NewWarningHeader(warningCode, "", text)
	return err == nil
}
