// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Verdict is the answer to one request. The zero value denies.
type Verdict struct {
	Allowed bool
	// Denials are the first reasons for which the request is denied, in the
	// order of judgement, at most 100.
	Denials []Denial
	// Denied is the number of all reasons.
	Denied int
	// Warnings are those that the policies give, before the limits that a
	// server puts on Warning headers.
	Warnings []string
	// AuditAnnotations have upstream's keys: <policy>/<key> and
	// ValidationFailureKey.
	AuditAnnotations map[string]string
	// Evaluations say what became of each step, in the order of judgement.
	Evaluations []Evaluation
	// Object is that of the request after all mutation. It is nil when nothing has
	// changed it, and where the verdict is a denial nobody gets it.
	Object *unstructured.Unstructured
	// Diverging are the policies that would change Object again if it came as a request.
	// They are looked for where an explanation was asked for.
	Diverging []Divergence
	// Unlisted is the number of policies that do not match and are too many to
	// be among Evaluations.
	Unlisted int
}

// Divergence is what a rule would do to an object that it, or a later one, has made.
type Divergence struct {
	Policy PolicyID
	Rule   string
	// Before and After are the object before the rule comes to it again, and after.
	Before, After *unstructured.Unstructured
	// Concealed says what the asker may not read although Before and After may tell it.
	Concealed string
}

// Denial is one reason to reject a request.
type Denial struct {
	// Message names the policy and the binding, as upstream's does.
	Message string
	Reason  metav1.StatusReason
}

// Outcome says what a step led to. The zero value is Failed.
type Outcome uint8

const (
	// Failed says that the policy could not be judged; its failurePolicy
	// decided what followed.
	Failed Outcome = iota
	// Passed says that the rule had nothing to object.
	Passed
	// Denied says that the request is denied for it.
	Denied
	// Warned says that the client is warned.
	Warned
	// Audited says that the audit event says so.
	Audited
	// Skipped says that a condition kept the policy from judging.
	Skipped
	// Unmatched says that the policy or its binding is not about the request.
	Unmatched
	// Changed says that the rule has changed the object of the request.
	Changed
)

// Evaluation is a step and what it led to. It shares what it points to with others,
// also with those of other requests, and nobody may modify that.
type Evaluation struct {
	*Origin
	Finding *Finding
	// Took is the time that the policy needed for all that it found through the
	// binding and with the param of Origin. It is zero when it had found that
	// before, through another binding.
	Took    time.Duration
	Outcome Outcome
}

// Join returns the verdict on a request that is first changed and then judged: that of
// mutating when it denies, since nobody judges what is not admitted then, and else that
// of judging with the evaluations, the warnings and the audit annotations of both.
func Join(mutating, judging Verdict) Verdict {
	if !mutating.Allowed {
		return mutating
	}
	joined := judging
	joined.Object, joined.Diverging = mutating.Object, mutating.Diverging
	joined.Evaluations = append(slices.Clip(mutating.Evaluations), judging.Evaluations...)
	joined.Warnings = append(slices.Clip(mutating.Warnings), judging.Warnings...)
	joined.Unlisted += mutating.Unlisted
	if len(mutating.AuditAnnotations) > 0 {
		joined.AuditAnnotations = maps.Clone(mutating.AuditAnnotations)
		maps.Copy(joined.AuditAnnotations, judging.AuditAnnotations)
	}
	return joined
}

// Allow is the verdict on a request that no policy has anything to say about.
func Allow() Verdict { return Verdict{Allowed: true} }

// Fold turns the findings of all policies into the verdict. It is the only
// place where failurePolicy and actions have an effect, and it follows
// Dispatch in k8s.io/apiserver/pkg/admission/plugin/policy/validating:
//
//	finding        FailClosed                Ignore
//	Pass           nothing                   nothing
//	Skip           nothing                   nothing
//	NotMatched     nothing                   nothing
//	Fail           the binding's actions     the binding's actions
//	Error          the binding's actions     nothing
//	Misconfigured  deny                      nothing
//	Refused        deny                      deny
//	Annotation     audit annotation          audit annotation
//	Mutated        nothing                   nothing
//	anything else  as Error                  as Error
//
// A step without actions denies. Audit annotations do not tell what a trace
// conceals; denials and warnings, which whoever sends the request gets anyway, are
// as without traces. Fold is a pure function: the order of steps is the order of
// denials, warnings and evaluations.
func Fold(steps []Step) Verdict {
	evaluations := make([]Evaluation, len(steps))
	for i := range steps {
		step := &steps[i]
		evaluations[i] = Evaluation{Origin: &step.Origin, Finding: &step.Finding, Took: step.Took}
	}
	return fold(evaluations)
}

// fold is Fold of steps whose outcomes are still to be found. It consumes steps,
// which become the evaluations of the verdict.
func fold(steps []Evaluation) Verdict {
	var f folder
	for i := range steps {
		f.fold(&steps[i])
	}
	return Verdict{
		Allowed:          f.denied == 0,
		Denials:          f.denials,
		Denied:           f.denied,
		Warnings:         f.warnings,
		AuditAnnotations: f.annotations.publish(),
		Evaluations:      slices.DeleteFunc(steps, func(step Evaluation) bool { return step.Finding.Kind == Annotation }),
	}
}

type folder struct {
	denials     []Denial
	denied      int
	warnings    []string
	warned      map[string]bool
	annotations annotations
}

func (f *folder) fold(step *Evaluation) {
	if step.Finding.Kind == Annotation {
		f.annotations.add(step.Policy.Name, step.Finding.Key, step.Finding.Shown(step.Finding.Value))
		return
	}
	step.Outcome = f.outcome(step)
}

// outcome returns what a step leads to, and notes it.
func (f *folder) outcome(step *Evaluation) Outcome {
	switch step.Finding.Kind {
	case Pass:
		return Passed
	case Skip:
		return Skipped
	case NotMatched:
		return Unmatched
	case Mutated:
		if step.Finding.Message != "" {
			f.warn(fmt.Sprintf("%s '%s': %s", step.Policy.Kind, step.Policy.display(), step.Finding.Message))
		}
		return Changed
	case Fail:
		return f.act(step)
	case Misconfigured:
		if step.OnError != Ignore {
			f.deny(step)
		}
	case Refused:
		f.deny(step)
	case Error, Undecided, Annotation: // an Annotation is no evaluation
		fallthrough
	default: // a kind that this version does not know
		if step.OnError != Ignore {
			f.act(step)
		}
	}
	return Failed
}

// act applies the actions of the binding and returns the gravest.
func (f *folder) act(step *Evaluation) Outcome {
	if len(step.Actions) == 0 {
		return f.deny(step)
	}
	outcome := Audited
	for _, action := range step.Actions {
		switch action {
		case Warn:
			f.warn(fmt.Sprintf("Validation failed for %s '%s' with binding '%s': %s",
				step.Policy.Kind, step.Policy.display(), step.Binding, step.Finding.Message))
			if outcome == Audited {
				outcome = Warned
			}
		case Audit:
			f.annotations.fail(step)
		case Deny:
			fallthrough
		default: // an action that this version does not know
			outcome = f.deny(step)
		}
	}
	return outcome
}

// maxWarnings bounds the warnings of a verdict; a server sends at most 4 KiB of
// them.
const maxWarnings = 1000

// warn adds each text once, as a server sends it.
func (f *folder) warn(text string) {
	if f.warned[text] || len(f.warnings) == maxWarnings {
		return
	}
	if f.warned == nil {
		f.warned = map[string]bool{}
	}
	f.warned[text] = true
	f.warnings = append(f.warnings, text)
}

func (f *folder) deny(step *Evaluation) Outcome {
	f.denied++
	if len(f.denials) == maxCauses {
		return Denied
	}
	through := ""
	if step.Binding != "" {
		through = fmt.Sprintf(" with binding '%s'", step.Binding)
	}
	f.denials = append(f.denials, Denial{
		Message: fmt.Sprintf("%s '%s'%s denied request: %s", step.Policy.Kind, step.Policy.display(), through, step.Finding.Message),
		Reason:  step.Finding.Reason,
	})
	return Denied
}
