// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// WhyNot returns the first reason for which the criteria do not apply to the
// subject, in the order in which Matches looks, with what was seen; it is empty
// when they apply and when Matches fails. It is the long form of Matches for
// those who ask, and agrees with it on a view that does not change meanwhile.
// The text is bounded, whatever the request and the criteria hold.
func (c *Criteria) WhyNot(ctx context.Context, s *Subject) string {
	if c == nil || !c.compiled {
		return ""
	}
	if c.byKind {
		return c.whyNotKinds(ctx, s)
	}
	if selected, err := c.namespaces.matchesNamespace(ctx, s); !selected && err == nil {
		return c.namespaces.whyNotNamespace(ctx, s)
	}
	if selected, err := c.objects.matchesObjects(s); !selected && err == nil {
		return c.objects.whyNotObjects(s)
	}
	under, by, err := c.matchesRules(c.excludes, s)
	switch {
	case err != nil:
		return ""
	case by != noRule && under.Resource != s.request.RequestResource:
		return fmt.Sprintf("excluded by excludeResourceRules[%d], as %s", by, resourceText(under.Resource, s.request.RequestSubResource))
	case by != noRule:
		return fmt.Sprintf("excluded by excludeResourceRules[%d]", by)
	case c.everyResource:
		return ""
	}
	if _, by, err = c.matchesRules(c.rules, s); by != noRule || err != nil {
		return ""
	}
	return c.whyNoRule(s)
}

func (l selector) whyNotNamespace(ctx context.Context, s *Subject) string {
	reason := fmt.Sprintf("namespaceSelector %s does not match namespace %s", l.text(), seen(s.request.Namespace))
	set, err := s.namespaceLabels(ctx)
	if err != nil { // unreachable: it did not match, so it was read
		return reason
	}
	return reason + " " + l.namespaceText(set)
}

func (l selector) whyNotObjects(s *Subject) string {
	reason := fmt.Sprintf("objectSelector %s does not match", l.text())
	req, sets := s.request, s.objectLabels()
	switch {
	case req.Object != nil && !sets.selectable.object:
		return reason + ": the options of a request to connect have no labels to select by"
	case req.Object != nil && req.OldObject != nil:
		return reason + " the object " + l.objectText(sets.object) + " nor the old object " + l.objectText(sets.oldObject)
	case req.Object != nil:
		return reason + " the object " + l.objectText(sets.object)
	case req.OldObject != nil:
		return reason + " the old object " + l.objectText(sets.oldObject)
	}
	return reason + ": the request has no object"
}

// text returns the selector as kubectl takes it, in an order that does not depend
// on that of maps, and what is too long as a number.
func (l selector) text() string {
	var texts []string
	requirements, _ := l.parsed.Requirements()
	for i := range requirements {
		if i == maxRequirements {
			break
		}
		requirement := &requirements[i]
		if values := len(requirement.ValuesUnsorted()); values > maxValues {
			texts = append(texts, fmt.Sprintf("%s %s (%d values)", requirement.Key(), requirement.Operator(), values))
			continue
		}
		texts = append(texts, requirement.String())
	}
	slices.Sort(texts)
	text := strings.Join(texts, ",")
	if left := len(requirements) - len(texts); left > 0 {
		text += fmt.Sprintf(",... (%d more)", left)
	}
	return cut(text, maxSelectorText)
}

// asked returns the labels that the selector asks for.
func (l selector) asked(set labels.Set) []string {
	var keys []string
	requirements, _ := l.parsed.Requirements()
	for i := range requirements {
		if key := requirements[i].Key(); set.Has(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// namespaceText returns the labels that were seen on a Namespace, which whoever
// asks need not be able to get: those that the selector asks for, and its name.
func (l selector) namespaceText(set labels.Set) string {
	keys := l.asked(set)
	if set.Has(corev1.LabelMetadataName) && !slices.Contains(keys, corev1.LabelMetadataName) {
		keys = append(keys, corev1.LabelMetadataName)
	}
	if len(keys) == 0 {
		return "(no such label)"
	}
	return labelsText(set, keys, len(keys))
}

// objectText returns the labels that were seen on an object, those first that the
// selector asks for. Of very many labels it returns no others.
func (l selector) objectText(set labels.Set) string {
	keys := l.asked(set)
	if asked := len(keys); len(set) <= maxSortedLabels {
		for key := range set {
			if _, again := slices.BinarySearch(keys[:asked], key); !again {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys[asked:])
	}
	switch {
	case len(set) == 0:
		return "(no labels)"
	case len(keys) == 0:
		return fmt.Sprintf("(%d labels, none of which it asks for)", len(set))
	}
	return labelsText(set, keys, len(set))
}

// labelsText returns the first of the labels with the given keys, and the number
// of the others when there are so many in all.
func labelsText(set labels.Set, keys []string, all int) string {
	keys = keys[:min(len(keys), maxItems)]
	shown := enumeration{more: all - len(keys)}
	for _, key := range keys {
		shown.add(key + "=" + set[key])
	}
	return "(labels: " + shown.String() + ")"
}
