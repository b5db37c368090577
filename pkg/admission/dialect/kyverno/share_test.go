// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// slowView answers when the time of the question is over.
type slowView struct{ cluster.View }

func (slowView) Objects(ctx context.Context, _ cluster.Selection) ([]*unstructured.Unstructured, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSlowPolicy: a policy that takes too long is an error of its own, and leaves time to
// the others.
func TestSlowPolicy(t *testing.T) {
	unit := compiled(t, rule("context: [{name: cm, configMap: {name: a, namespace: b}}]\nmutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{cm.data.a}}\"}}}}"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	findings := unit.Policy.Program.Evaluate(ctx, input(create(object(t, pod)), slowView{}))
	if len(findings) != 1 || findings[0].Kind != verdict.Error || !strings.HasPrefix(findings[0].Message, "the policy takes longer than the ") {
		t.Errorf("got %+v", findings)
	}
	if ctx.Err() != nil {
		t.Error("no time is left")
	}
}
