// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portcullis-dev/portcullis/pkg/registry/stored"
)

func TestSchemeKnowsStoredKinds(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range stored.Kinds() {
		for _, object := range []runtime.Object{kind.New(), kind.NewList()} {
			kinds, _, err := scheme.ObjectKinds(object)
			if err != nil {
				t.Errorf("%s: %v", kind.Resource, err)
				continue
			}
			served := schema.GroupVersionKind{Group: kinds[0].Group, Version: "v1alpha1", Kind: kinds[0].Kind}
			if !scheme.Recognizes(served) {
				t.Errorf("%s: %v is not served", kind.Resource, served)
			}
		}
	}
}

func TestMediaTypesOfTheGroup(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, info := range (withoutProtobuf{newCodecs(scheme)}).SupportedMediaTypes() {
		types = append(types, info.MediaType)
	}
	if got, want := strings.Join(types, " "), "application/json application/yaml"; got != want {
		t.Errorf("media types %q, want %q", got, want)
	}
}

func TestStandaloneConfigNamesWhatIsMissing(t *testing.T) {
	if _, err := NewStandaloneConfig(StandaloneOptions{}); err == nil || err.Error() != "standalone server: no listener" {
		t.Errorf("got %v", err)
	}
}
