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

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// WhyNot returns the first reason for which the criteria do not apply to the
// request, in the order in which Matches looks, with what was seen; it is empty
// when they apply and when Matches fails. It is the long form of Matches for
// those who ask, and agrees with it on a view that does not change meanwhile.
// The text is bounded, whatever the request and the criteria hold.
func (c *Criteria) WhyNot(ctx context.Context, req *request.Request, view cluster.View) string {
	if c == nil || !c.compiled {
		return ""
	}
	if selected, err := c.namespaces.matchesNamespace(ctx, req, view); !selected && err == nil {
		return c.namespaces.whyNotNamespace(ctx, req, view)
	}
	if selected, err := c.objects.matchesObjects(req); !selected && err == nil {
		return c.objects.whyNotObjects(req)
	}
	under, by, err := c.matchesRules(c.excludes, req, view)
	switch {
	case err != nil:
		return ""
	case by != noRule && under.Resource != req.RequestResource:
		return fmt.Sprintf("excluded by excludeResourceRules[%d], as %s", by, resourceText(under.Resource, req.RequestSubResource))
	case by != noRule:
		return fmt.Sprintf("excluded by excludeResourceRules[%d]", by)
	case c.everyResource:
		return ""
	}
	if _, by, err = c.matchesRules(c.rules, req, view); by != noRule || err != nil {
		return ""
	}
	return c.whyNoRule(req, view)
}

func (s selector) whyNotNamespace(ctx context.Context, req *request.Request, view cluster.View) string {
	reason := fmt.Sprintf("namespaceSelector %s does not match namespace %s", s.text(), seen(req.Namespace))
	set, err := namespaceLabels(ctx, req, view)
	if err != nil { // it could be read a moment ago
		return reason
	}
	return reason + " " + s.namespaceText(set)
}

func (s selector) whyNotObjects(req *request.Request) string {
	reason := fmt.Sprintf("objectSelector %s does not match", s.text())
	sets, err := labelsOf(req)
	switch {
	case err != nil:
		return reason + " the object"
	case req.Object != nil && req.OldObject != nil:
		return reason + " the object " + s.objectText(sets.object) + " nor the old object " + s.objectText(sets.oldObject)
	case req.Object != nil:
		return reason + " the object " + s.objectText(sets.object)
	case req.OldObject != nil:
		return reason + " the old object " + s.objectText(sets.oldObject)
	}
	return reason + ": the request has no object"
}

// text returns the selector as kubectl takes it, in an order that does not depend
// on that of maps, and what is too long as a number.
func (s selector) text() string {
	var texts []string
	requirements, _ := s.labels.Requirements()
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
func (s selector) asked(set labels.Set) []string {
	var keys []string
	requirements, _ := s.labels.Requirements()
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
func (s selector) namespaceText(set labels.Set) string {
	keys := s.asked(set)
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
func (s selector) objectText(set labels.Set) string {
	keys := s.asked(set)
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
