// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/typing"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

const (
	// warningBudget bounds how long the write of a policy waits for its types to be
	// checked. That takes a few milliseconds; the controller has more time.
	warningBudget = 250 * time.Millisecond
	// warningWork bounds the policies that have types checked when they are written,
	// so that a single expression, which nothing interrupts, rarely takes longer than
	// warningBudget.
	warningWork = 1 << 20
	// warningChecks bounds the writes that have types checked at a time.
	warningChecks = 2
	// maxWarnings and maxWarningBytes keep the warnings of a write below what
	// k8s.io/apiserver/pkg/endpoints/filters/warning.go would cut.
	maxWarnings     = 10
	maxWarningBytes = 256
)

// types checks the types of policies as the cluster shows them at the moment.
type types struct {
	checker *typing.Checker
	view    func() cluster.View
	turns   chan struct{} // holds an entry for each write that has types checked
}

func newTypes(view func() cluster.View) *types {
	return &types{checker: typing.New(), view: view, turns: make(chan struct{}, warningChecks)}
}

// check checks one policy.
func (t *types) check(ctx context.Context, policy *admissionregistrationv1.ValidatingAdmissionPolicySpec) (*typing.Result, error) {
	return t.checker.Check(ctx, t.view(), policy)
}

// warnings returns what a writer of a policy is told of its types. Without enough
// time it is only that.
func (t *types) warnings(ctx context.Context, policy *policyapi.ValidatingAdmissionPolicy) []string {
	ctx, cancel := context.WithTimeout(ctx, warningBudget)
	defer cancel()
	late := []string{fmt.Sprintf("types are not checked within %v: see status.typeChecking and the condition TypeChecked of the stored policy", warningBudget)}
	if typing.Work(&policy.Spec) > warningWork {
		return late
	}
	select {
	case t.turns <- struct{}{}:
		defer func() { <-t.turns }()
	case <-ctx.Done():
		return late
	}
	result, err := t.check(ctx, &policy.Spec)
	if errors.Is(err, context.DeadlineExceeded) {
		return late
	}
	if err != nil {
		return nil // the condition of the stored policy says why
	}
	lines := result.Lines(maxWarningBytes)
	if left := len(lines) - maxWarnings; left > 0 {
		lines = append(lines[:maxWarnings], fmt.Sprintf("%d more warnings on types: see the condition TypeChecked of the stored policy", left))
	}
	if incomplete := result.Incomplete(); incomplete != "" {
		lines = append(lines, incomplete)
	}
	return lines
}
