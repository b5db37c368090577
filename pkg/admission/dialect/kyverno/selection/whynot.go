// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// WhyNot returns the first reason for which the rule is not about the subject, with what
// was seen; it is empty when the rule is, and when Matches fails. The text is bounded,
// whatever the request and the rule hold. Of the labels of a namespace it shows no
// others than those that the rule asks for.
func (s *Selection) WhyNot(ctx context.Context, subject *Subject) string {
	if matched, err := s.Matches(ctx, subject); matched || err != nil {
		return ""
	}
	switch {
	case subject.object == nil:
		return "the request has no object"
	case !s.reaches(subject) && subject.namespace == "":
		return fmt.Sprintf("the policy is about namespace %s only, and the object is in none", seen(s.namespace))
	case !s.reaches(subject):
		return fmt.Sprintf("the policy is about namespace %s only, not %s", seen(s.namespace), seen(subject.namespace))
	}
	if matched, err := s.match.matches(ctx, subject); !matched.matched && err == nil {
		return s.match.whyNot(ctx, subject, matched)
	}
	excluded, _ := s.exclude.matches(ctx, subject)
	if excluded.by >= 0 {
		return "excluded by " + s.exclude.filters[excluded.by].place
	}
	if len(s.exclude.filters) > 1 {
		return "excluded by all of exclude.all"
	}
	return "excluded by " + s.exclude.filters[0].place
}

// whyNot says in what the filters do not match: the one that decides, or each of any.
func (b *block) whyNot(ctx context.Context, subject *Subject, decided answer) string {
	if decided.by >= 0 {
		f := &b.filters[decided.by]
		return f.place + ": " + f.whyNot(ctx, subject, decided.why)
	}
	var reasons []string
	for i := range b.filters {
		if i == maxReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more", len(b.filters)-i))
			break
		}
		f := &b.filters[i]
		why, err := f.check(ctx, subject)
		if err != nil { // unreachable: none of the filters failed before
			continue
		}
		reasons = append(reasons, f.place+": "+f.whyNot(ctx, subject, why))
	}
	return strings.Join(reasons, "; ")
}

func (f *filter) whyNot(ctx context.Context, s *Subject, why aspect) string {
	switch why {
	case byNothing:
		return "it asks for nothing"
	case byOperation:
		return fmt.Sprintf("operation %s is none of %s", seen(string(s.request.Operation)), enumerate(f.operations))
	case byKind:
		return f.whyNotKind(s)
	case byName:
		return fmt.Sprintf("name %s does not match %s", seen(s.name), enumerate(texts(f.names)))
	case byNames:
		return fmt.Sprintf("name %s matches none of %s", seen(s.name), enumerate(texts(f.anyName)))
	case byNamespace:
		return fmt.Sprintf("namespace %s matches none of %s", seen(s.placeName()), enumerate(texts(f.namespaces)))
	case byAnnotation:
		return fmt.Sprintf("no annotation matches %s", f.missing(s.annotations()))
	case bySelector:
		return fmt.Sprintf("selector %s does not match the object %s", f.selector, f.selector.objectText(s.labels()))
	case byNamespaceKind:
		return "namespaceSelector does not select objects of kind Namespace"
	case byNamespaceSelector:
		return f.whyNotNamespace(ctx, s)
	case bySubject:
		return fmt.Sprintf("user %s is none of %s", seen(s.request.User.GetName()), enumerate(f.subjectTexts()))
	case byRole:
		return "the user has none of the Roles " + enumerate(f.roles)
	case byClusterRole:
		return "the user has none of the ClusterRoles " + enumerate(f.clusterRoles)
	case matches:
	}
	return ""
}

func (f *filter) whyNotNamespace(ctx context.Context, s *Subject) string {
	if s.request.Namespace == "" {
		return fmt.Sprintf("namespaceSelector %s does not match: the object is in no namespace", f.ofNamespace)
	}
	labels, err := s.namespaceLabels(ctx)
	if err != nil { // unreachable: it did not match, so it was read
		return ""
	}
	return fmt.Sprintf("namespaceSelector %s does not match namespace %s %s", f.ofNamespace, seen(s.request.Namespace), f.ofNamespace.namespaceText(labels))
}

func (f *filter) subjectTexts() []string {
	texts := make([]string, len(f.subjects))
	for i := range f.subjects {
		texts[i] = f.subjects[i].text
	}
	return texts
}

func (f *filter) whyNotKind(s *Subject) string {
	about := s.request.Kind.Kind
	if s.request.SubResource != "" {
		about = s.request.Resource.Resource + "/" + s.request.SubResource
		if of, err := s.parentKind(); err == nil {
			about = of.Kind + "/" + s.request.SubResource
		}
	} else if group := s.request.Kind.GroupVersion().String(); group != "" {
		about = group + "/" + about
	}
	wanted := make([]string, len(f.kinds))
	for i := range f.kinds {
		wanted[i] = f.kinds[i].text
	}
	return fmt.Sprintf("kind %s is none of %s", seen(about), enumerate(wanted))
}

// String returns the pair for people.
func (p *pair) String() string { return seen(p.key.text + "=" + p.value.text) }

// String returns the selector for people, and what is too long as a number.
func (l *labelSelector) String() string {
	if l.never != nil {
		return "(" + seen(l.never.Error()) + ")"
	}
	var items []string
	requirements, _ := l.exact.Requirements()
	for i := range requirements {
		if len(requirements[i].ValuesUnsorted()) > maxItems {
			items = append(items, fmt.Sprintf("%s %s (%d values)", requirements[i].Key(), requirements[i].Operator(), len(requirements[i].ValuesUnsorted())))
			continue
		}
		items = append(items, requirements[i].String())
	}
	for i := range l.pairs {
		items = append(items, l.pairs[i].key.text+"="+l.pairs[i].value.text)
	}
	return enumerate(items)
}

// objectText returns the labels of an object, those first that the selector asks for.
func (l *labelSelector) objectText(set labels.Set) string {
	if len(set) == 0 {
		return "(no labels)"
	}
	asked := l.asked(set)
	return "(labels: " + enumerate(append(asked, labelsWithout(set, asked)...)) + ")"
}

// namespaceText returns the labels of a Namespace that the selector asks for, and its
// name: whoever asks need not be able to read the others.
func (l *labelSelector) namespaceText(set labels.Set) string {
	asked := l.asked(set)
	if name, ok := set[corev1.LabelMetadataName]; ok {
		asked = append(asked, corev1.LabelMetadataName+"="+name)
	}
	if len(asked) == 0 {
		return "(no such label)"
	}
	return "(labels: " + enumerate(asked) + ")"
}
