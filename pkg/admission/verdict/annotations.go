// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"encoding/json"
	"strings"
)

// ValidationFailureKey is the audit annotation that lists what failed under
// the action Audit.
const ValidationFailureKey = "validation.policy.admission.k8s.io/validation_failure"

const (
	// maxAnnotationBytes cuts each value of an audit annotation, by bytes, as
	// upstream does.
	maxAnnotationBytes = 10 * 1024
	// maxAnnotationsBytes bounds all values together: one policy may be judged
	// with many params. Further values are left out.
	maxAnnotationsBytes = 1 << 20
	// maxFailures bounds the list under ValidationFailureKey, as upstream does.
	maxFailures = 50
)

// failure has the fields of upstream's validating.ValidationFailureValue, in
// the same order.
type failure struct {
	Message           string   `json:"message"`
	Policy            string   `json:"policy"`
	Binding           string   `json:"binding"`
	ExpressionIndex   int      `json:"expressionIndex"`
	ValidationActions []string `json:"validationActions"`
}

// annotations collects audit annotations. Distinct values of one key, which
// stem from several bindings or params, are joined in the order of judgement.
type annotations struct {
	values   map[string][]string
	seen     map[[2]string]bool // key and value
	bytes    int                // of all values
	failures []failure
}

func (a *annotations) add(policy, key, value string) {
	if len(value) > maxAnnotationBytes {
		value = value[:maxAnnotationBytes]
	}
	if a.values == nil {
		a.values, a.seen = map[string][]string{}, map[[2]string]bool{}
	}
	key = policy + "/" + key
	if a.bytes+len(value) > maxAnnotationsBytes || a.seen[[2]string{key, value}] {
		return
	}
	a.seen[[2]string{key, value}] = true
	a.bytes += len(value)
	a.values[key] = append(a.values[key], value)
}

func (a *annotations) fail(step *Evaluation) {
	if len(a.failures) == maxFailures {
		return
	}
	actions := make([]string, len(step.Actions))
	for i, action := range step.Actions {
		actions[i] = action.String()
	}
	a.failures = append(a.failures, failure{
		Message:           step.Finding.Shown(step.Finding.Message),
		Policy:            step.Policy.Name,
		Binding:           step.Binding,
		ExpressionIndex:   step.Finding.Index,
		ValidationActions: actions,
	})
}

func (a *annotations) publish() map[string]string {
	if len(a.values) == 0 && len(a.failures) == 0 {
		return nil
	}
	published := make(map[string]string, len(a.values)+1)
	for key, values := range a.values {
		published[key] = strings.Join(values, ", ")
	}
	if len(a.failures) > 0 {
		if list, err := json.Marshal(a.failures); err == nil { // strings and numbers always marshal
			published[ValidationFailureKey] = string(list)
		}
	}
	return published
}

// String returns the name of the action in the API.
func (a Action) String() string {
	switch a {
	case Deny:
		return "Deny"
	case Warn:
		return "Warn"
	case Audit:
		return "Audit"
	}
	return "Unknown"
}
