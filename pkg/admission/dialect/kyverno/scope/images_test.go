// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope_test

import (
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/scope"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

func TestImages(t *testing.T) {
	const absent = `Unknown key "images"`
	tests := []struct{ name, object, expression, want, wantErr string }{
		{
			name: "pod", object: `{kind: Pod, spec: {containers: [{name: app, image: "ghcr.io/acme/web:2.0"}, {name: side-car, image: redis}], initContainers: [{name: init, image: "a/b@sha256:` + strings.Repeat("0", 64) + `"}]}}`,
			expression: `images.[containers.app, containers."side-car".[registry, name, tag, digest], initContainers.init.[path, tag, digest, jsonPointer], ephemeralContainers]`,
			want: `[{"jsonPointer":"/spec/containers/0/image","name":"web","path":"acme/web","reference":"ghcr.io/acme/web:2.0","referenceWithTag":"ghcr.io/acme/web:2.0","registry":"ghcr.io","tag":"2.0"},` +
				`["docker.io","redis","latest",null],["a/b",null,"sha256:` + strings.Repeat("0", 64) + `","/spec/initContainers/0/image"],null]`,
		},
		{name: "controller", object: `{kind: Deployment, spec: {template: {spec: {containers: [{name: app, image: "x:1"}]}}}}`, expression: "images.containers.app.[tag, jsonPointer]", want: `["1","/spec/template/spec/containers/0/image"]`},
		{name: "cron job", object: `{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: app, image: "x:1"}]}}}}}}`, expression: "images.containers.app.jsonPointer", want: `"/spec/jobTemplate/spec/template/spec/containers/0/image"`},
		{name: "other kind", object: `{kind: Widget, spec: {containers: [{name: app, image: "x:1"}]}}`, expression: "images", wantErr: absent},
		{name: "no spec", object: `{kind: Pod}`, expression: "images", wantErr: absent},
		{name: "no images", object: `{kind: Pod, spec: {containers: [{name: app}, {name: b, image: " "}, 5]}}`, expression: "images", wantErr: absent},
		{name: "no image that can be parsed", object: `{kind: Pod, spec: {containers: [{name: app, image: "x:1"}, {name: bad, image: "UPPER CASE"}]}}`, expression: "images.containers.app || 'z'", wantErr: "images: /spec/containers/1/image: "},
		{name: "no name", object: `{kind: Pod, spec: {containers: [{image: "x:1"}]}}`, expression: "images", wantErr: "images: /spec/containers/0 has no name"},
		{name: "no list", object: `{kind: Pod, spec: {containers: x}}`, expression: "images", wantErr: "images: /spec/containers is no list"},
		{name: "no object", object: `{kind: Job, spec: {template: [1]}}`, expression: "images", wantErr: "images: spec.template.spec of the object is no object"},
		{name: "in all variables", object: `{kind: Pod, spec: {containers: [{name: app, image: x}]}}`, expression: "@.images.containers.app.name", want: `"x"`},
		{name: "deleted", expression: "images", wantErr: absent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := newRun()
			variables := scope.New(policy.Input{Request: request.New(request.Fields{Object: object(t, test.object)})}, run)
			variables.WithoutRoles()
			got, err := resolve(t, run, variables, test.expression)
			check(t, got, err, test.want, test.wantErr)
		})
	}
}

// TestImagesStay: rules do not see in images what former ones have changed.
func TestImagesStay(t *testing.T) {
	run := newRun()
	pod := `{kind: Pod, spec: {containers: [{name: app, image: "x:1"}]}}`
	variables := scope.New(policy.Input{Request: request.New(request.Fields{Object: object(t, pod)})}, run)
	for _, want := range []string{"1", "2"} {
		variables.SetObject(object(t, strings.Replace(pod, "x:1", "x:"+want, 1)))
		got, err := resolve(t, run, variables, "images.containers.app.tag")
		check(t, got, err, `"1"`, "")
	}
}
