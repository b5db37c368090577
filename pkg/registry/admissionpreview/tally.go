// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	// maxFailureEvaluations bounds the evaluations that are listed of one object.
	maxFailureEvaluations = 10
	// maxFailureBytes bounds what is listed of one object: messages, expressions and
	// values. The first evaluation is listed in any case, with texts that are cut.
	maxFailureBytes = 64 << 10
	// maxHeldBytes bounds the objects that are kept to be explained.
	maxHeldBytes = 16 << 20
	// maxFailureText bounds a text that is listed of an object, in characters.
	maxFailureText = 4 << 10
)

// tally counts what became of existing objects, and keeps the first that do not
// pass.
type tally struct {
	counts    [gradePassed + 1]int
	changed   int  // by mutation
	read      int  // bytes, about
	remaining int  // within the limit, and not judged
	unsure    bool // there may be more that remain
	heavy     bool // they remain because too much was read, and else for want of time
	truncated bool // there are others, or may be

	room  int
	grave []*failure // denied and errors, at most room
	mild  []*failure // others, for which grave leaves room
	held  int        // bytes of their objects
}

// failure is an object that does not pass.
type failure struct {
	namespace, name string

	object *unstructured.Unstructured // nil when there was no room for it
	bytes  int                        // that it takes
	grade  grade
	err    error // there is no verdict

	message     string
	evaluations []policyapi.Evaluation
}

// add counts an object that took so many bytes to read.
func (t *tally) add(object *unstructured.Unstructured, bytes int, answer *verdict.Verdict, err error) {
	t.read += bytes
	kept := &failure{namespace: object.GetNamespace(), name: object.GetName(), err: err}
	if err != nil {
		kept.message = cut(err.Error(), maxFailureText)
	} else {
		kept.grade = gradeOf(answer)
		if answer.Allowed && answer.Object != nil {
			t.changed++
		}
	}
	t.counts[kept.grade]++
	list, taken := &t.mild, len(t.grave)+len(t.mild)
	switch kept.grade {
	case gradePassed:
		return
	case gradeDenied, gradeError:
		list, taken = &t.grave, len(t.grave)
	case gradeWarned, gradeAudited, gradeIgnored:
	}
	if taken >= t.room {
		return
	}
	if len(t.grave)+len(t.mild) >= t.room { // the last of the others makes room
		last := len(t.mild) - 1
		t.held -= t.mild[last].bytes
		t.mild[last], t.mild = nil, t.mild[:last]
	}
	if t.held+bytes <= maxHeldBytes {
		kept.object, kept.bytes = object, bytes
		t.held += bytes
	}
	if err == nil {
		kept.sketch(answer)
	}
	*list = append(*list, kept)
}

// leave notes that so many objects at least are not judged, and perhaps more.
func (t *tally) leave(limit, left int, more bool) {
	within := limit - t.judged()
	t.remaining = min(left, within)
	t.unsure = more && left < within
	t.truncated = more || left > within
}

func (t *tally) judged() int {
	sum := 0
	for _, count := range t.counts {
		sum += count
	}
	return sum
}

func (t *tally) allowed() int { return t.judged() - t.counts[gradeDenied] - t.counts[gradeError] }

// kept returns the objects that are listed.
func (t *tally) kept() []*failure {
	return append(t.grave[:len(t.grave):len(t.grave)], t.mild...)
}

// sketch notes what an answer without an explanation may tell: the texts that who
// sends the object is told. What other texts conceal is not known.
func (f *failure) sketch(answer *verdict.Verdict) {
	f.list(answer)
	for i := range f.evaluations {
		if outcome := f.evaluations[i].Outcome; outcome != policyapi.OutcomeDenied && outcome != policyapi.OutcomeWarned {
			f.evaluations[i].Message = ""
		}
	}
	f.summarize(answer)
}

// describe notes what an answer with an explanation tells.
func (f *failure) describe(answer *verdict.Verdict) {
	f.list(answer)
	f.summarize(answer)
}

func (f *failure) summarize(answer *verdict.Verdict) {
	switch {
	case len(answer.Denials) > 0:
		f.message = cut(answer.Denials[0].Message, maxFailureText)
	case len(f.evaluations) > 0:
		f.message = f.evaluations[0].Message
	}
}

// list notes the evaluations that did not pass, the gravest first.
func (f *failure) list(answer *verdict.Verdict) {
	f.evaluations = nil
	bytes := 0
	for _, wanted := range []verdict.Outcome{verdict.Denied, verdict.Failed, verdict.Warned, verdict.Audited} {
		for i := range answer.Evaluations {
			if answer.Evaluations[i].Outcome != wanted {
				continue
			}
			next := evaluation(&answer.Evaluations[i])
			next.Message, next.Expression = cut(next.Message, maxFailureText), cut(next.Expression, maxFailureText)
			bytes += size(&next)
			if len(f.evaluations) == maxFailureEvaluations || len(f.evaluations) > 0 && bytes > maxFailureBytes {
				return
			}
			f.evaluations = append(f.evaluations, next)
		}
	}
}

func size(of *policyapi.Evaluation) int {
	sum := len(of.Message) + len(of.Expression) + len(of.WhyNot)
	for text, value := range of.Values {
		sum += len(text) + len(value.Raw)
	}
	return sum
}
