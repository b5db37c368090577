// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// valuesOf is one row for each form of an expression: what is seen of it.
func valuesOf() map[string]string {
	return map[string]string{
		"true":                 `null`,
		"1 in [1, 2]":          `null`,
		"[1, 2].all(x, x > 0)": `null`,
		"object.spec.replicas <= params.maxReplicas":                                     `{"object.spec.replicas":6,"params.maxReplicas":3}`,
		"object.spec.replicas > oldObject.spec.replicas && object.spec.replicas > 1":     `{"object.spec.replicas":6,"oldObject.spec.replicas":5}`,
		`object.metadata.labels['app'] == 'web' && object.metadata.labels["a/b"] == 'x'`: `{"object.metadata.labels[\"a/b\"]":"\u003cc\u003e","object.metadata.labels['app']":"web"}`,
		"object.metadata.labels.`a/b` == ''":                                             "{\"object.metadata.labels.`a/b`\":\"\\u003cc\\u003e\"}",
		"object['spec']['replicas'] == 6":                                                `{"object['spec']['replicas']":6}`,
		"object.spec.containers[0].image.startsWith(params.registry)":                    `{"object.spec.containers[0].image":"docker.io/a","params.registry":"docker.io/"}`,
		"object.spec.containers[params.index].name == 'b'":                               `{"object.spec.containers[params.index].name":"b","params.index":1}`,
		"object.spec.containers[9].name == 'b'":                                          `{"object.spec.containers[9].name":{"error":"index out of bounds: 9"}}`,
		"object.spec.absent == 1":                                                        `{"object.spec.absent":{"error":"no such key: absent"}}`,
		"object.spec.absent == 1 || object.spec.replicas == 6":                           `{"object.spec.absent":{"error":"no such key: absent"},"object.spec.replicas":6}`,
		"has(object.spec.absent) && object.spec.absent == 1":                             `{"has(object.spec.absent)":false}`,
		"has(object.spec.replicas) && object.spec.replicas == 1":                         `{"has(object.spec.replicas)":true,"object.spec.replicas":6}`,
		"object.?spec.absent.orValue(1) == 1 && object.?spec.replicas.orValue(1) == 6":   `{"object.?spec.absent":{"absent":true},"object.?spec.replicas":6}`,
		"object.metadata[?'labels'].?app.hasValue()":                                     `{"object.metadata[?'labels'].?app":"web"}`,
		"object.spec.containers.all(c, c.image.startsWith(params.registry))":             `{"object.spec.containers":[{"image":"docker.io/a","name":"a"},{"image":"docker.io/b","name":"b"}],"params.registry":"docker.io/"}`,
		"object.spec.containers.exists(c, object.metadata.labels[?c.name].hasValue())":   `{"object.metadata.labels":{"a/b":"\u003cc\u003e","app":"web"},"object.spec.containers":[{"image":"docker.io/a","name":"a"},{"image":"docker.io/b","name":"b"}]}`,
		"object.spec.containers.filter(c, c.name == 'b')[0].image == ''":                 `{"object.spec.containers":[{"image":"docker.io/a","name":"a"},{"image":"docker.io/b","name":"b"}]}`,
		"[1, 2].exists(object, object == 2)":                                             `null`,
		"(object.spec.paused ? object : oldObject).spec.replicas == 5":                   `{"object.spec.paused":false}`,
		"object.spec.ratio < 1.0 ? object.spec.replicas == 6 : false":                    `{"object.spec.ratio":0.5,"object.spec.replicas":6}`,
		"object.metadata.labels == {'app': params.registry}":                             `{"object.metadata.labels":{"a/b":"\u003cc\u003e","app":"web"},"params.registry":"docker.io/"}`,
		"request.userInfo.username == 'jane' && 'ops' in request.userInfo.groups":        `{"request.userInfo.groups":["dev"],"request.userInfo.username":"jane"}`,
		"request.operation == 'CREATE' || request.kind.kind == 'Deployment'":             `{"request.kind.kind":"Deployment","request.operation":"UPDATE"}`,
		"namespaceObject.metadata.labels.size() == 1":                                    `{"namespaceObject.metadata.labels":{"kubernetes.io/metadata.name":"default"}}`,
		"variables.tooMany":                             `{"object.spec.replicas":6,"params.maxReplicas":3,"variables.tooMany":true,"variables.twice":12}`,
		"variables.twice > 3 && variables.twice < 100":  `{"object.spec.replicas":6,"variables.twice":12}`,
		"variables.containers[1].name == 'b'":           `{"object.spec.containers":[{"image":"docker.io/a","name":"a"},{"image":"docker.io/b","name":"b"}],"variables.containers[1].name":"b"}`,
		"variables.size.isGreaterThan(quantity('1Gi'))": `{"object.metadata.annotations.size":"2Gi","variables.size":"2Gi"}`,
		"variables.broken == 1":                         `{"object.spec.absent":{"error":"no such key: absent"},"variables.broken":{"error":"variable \"broken\" cannot be evaluated: no such key: absent"}}`,
		"variables.maybe.hasValue()":                    `{"object.?spec.absent":{"absent":true},"variables.maybe":{"absent":true}}`,
		"authorizer.group('apps').resource('deployments').name(object.metadata.name).check('get').allowed()":        `{"authorizer.group('apps').resource('deployments').name(object.metadata.name).check('get').allowed()":false,"object.metadata.name":"web"}`,
		"authorizer.requestResource.check('create').reason() == '' && authorizer.path('/x').check('get').errored()": `{"authorizer.path('/x').check('get').errored()":false,"authorizer.requestResource.check('create').reason()":""}`,
	}
}

func TestExplainValues(t *testing.T) {
	for expression, want := range valuesOf() {
		t.Run(expression, func(t *testing.T) {
			findings := asking{
				policy:  withVariables(admissionregistrationv1.Validation{Expression: expression}),
				request: web(), param: limit(), explain: mayReadAll(),
			}.findings(t)
			if len(findings) != 1 || findings[0].Trace == nil {
				t.Fatalf("got %+v, want one finding with a trace", findings)
			}
			if got := marshalled(t, findings[0].Trace.Values); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if findings[0].Trace.Took <= 0 {
				t.Error("it took no time")
			}
		})
	}
}
