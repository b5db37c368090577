// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"context"
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// slowMapper knows nothing, and has the time run out at some question.
type slowMapper struct {
	meta.RESTMapper
	questions, most int
	expire          func()
}

func (m *slowMapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	if m.questions++; m.questions == m.most {
		m.expire()
	}
	return nil, &meta.NoResourceMatchError{PartialResource: resource}
}

// TestTargetsInTime: nothing is looked up when the time is over, and the writer is told.
func TestTargetsInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	mapper := &slowMapper{most: 3, expire: cancel}
	rule := admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}},
	}}
	for i := range 100 {
		rule.Resources = append(rule.Resources, fmt.Sprint("unknown", i))
	}
	constraints := &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule, rule}}
	targets, others := targetsOf(ctx, mapper, constraints)
	if len(targets) > 0 || mapper.questions != 3 || !slices.Contains(others, "what the rules name that was not looked up in time") {
		t.Errorf("got %v and %v after %d questions, want nothing after 3, and to be told", targets, others, mapper.questions)
	}
}
