// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package kyverno_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/dialecttest"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// rule is a policy with one rule about Pods, with further fields.
func rule(fields string) string {
	return "rules:\n- name: r\n  match: {any: [{resources: {kinds: [Pod]}}]}\n" + indented(fields)
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// doubling declares variables, each twice as long as the one before.
func doubling(times int) string {
	var text strings.Builder
	text.WriteString("context:\n- {name: v0, variable: {value: \"0123456789abcdef\"}}\n")
	for i := 1; i <= times; i++ {
		fmt.Fprintf(&text, "- {name: v%d, variable: {value: \"{{v%d}}{{v%d}}\"}}\n", i, i-1, i-1)
	}
	fmt.Fprintf(&text, "mutate: {patchStrategicMerge: {metadata: {annotations: {all: \"{{v%d}}\"}}}}\n", times)
	return text.String()
}

func TestSuite(t *testing.T) {
	dialecttest.Run(t, dialecttest.Suite{
		Dialect:    kyverno.New(),
		Request:    func() *request.Request { return create(object(t, pod)) },
		View:       offlineView(t),
		Allowing:   clusterPolicy(t, rule(`mutate: {patchStrategicMerge: {metadata: {labels: {app: "{{request.object.metadata.labels.app}}"}}}}`)),
		Mutating:   clusterPolicy(t, rule(`mutate: {patchesJson6902: "- {op: add, path: /metadata/labels/by, value: '{{request.userInfo.username}}'}"}`)),
		Failing:    clusterPolicy(t, rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{request.object.spec.nothing}}"}}}}`)),
		Reading:    clusterPolicy(t, rule("context: [{name: cm, configMap: {name: absent, namespace: shop}}]\nmutate: {patchStrategicMerge: {metadata: {labels: {a: \"{{cm.data.a}}\"}}}}")),
		Exhausting: clusterPolicy(t, rule(doubling(40))),
		Broken:     clusterPolicy(t, rule(`mutate: {patchStrategicMerge: {metadata: {labels: {a: "{{ request.object. }}"}}}}`)),
	})
}
