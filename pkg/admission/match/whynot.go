// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	return reason + " " + s.labelsText(set)
}

func (s selector) whyNotObjects(req *request.Request) string {
	reason := fmt.Sprintf("objectSelector %s does not match", s.text())
	sets, err := labelsOf(req)
	switch {
	case err != nil:
		return reason + " the object"
	case req.Object != nil && req.OldObject != nil:
		return reason + " the object " + s.labelsText(sets.object) + " nor the old object " + s.labelsText(sets.oldObject)
	case req.Object != nil:
		return reason + " the object " + s.labelsText(sets.object)
	case req.OldObject != nil:
		return reason + " the old object " + s.labelsText(sets.oldObject)
	}
	return reason + ": the request has no object"
}

// text returns the selector as kubectl takes it, in an order that does not depend
// on that of maps.
func (s selector) text() string {
	requirements, _ := s.labels.Requirements()
	texts := make([]string, 0, len(requirements))
	for i := range requirements {
		texts = append(texts, requirements[i].String())
	}
	slices.Sort(texts)
	return cut(strings.Join(texts, ","), maxSelectorText)
}

// labelsText returns the labels that were seen, those first that the selector
// asks for.
func (s selector) labelsText(set labels.Set) string {
	if len(set) == 0 {
		return "(no labels)"
	}
	asked := map[string]bool{}
	requirements, _ := s.labels.Requirements()
	for i := range requirements {
		asked[requirements[i].Key()] = true
	}
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if asked[a] != asked[b] {
			if asked[a] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var shown enumeration
	for _, key := range keys {
		shown.add(key + "=" + set[key])
	}
	return "(labels: " + shown.String() + ")"
}
