// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/internal/builtin"
)

// at follows a path of fields; [] is an item of a list, {} a value of a map.
func at(t *testing.T, s *spec.Schema, path string) *spec.Schema {
	t.Helper()
	for name := range strings.SplitSeq(path, ".") {
		switch {
		case name == "":
		case name == "[]" && s.Items != nil:
			s = s.Items.Schema
		case name == "{}" && s.AdditionalProperties != nil:
			s = s.AdditionalProperties.Schema
		default:
			property, found := s.Properties[name]
			if !found {
				t.Fatalf("%s: there is no %s", path, name)
			}
			s = &property
		}
	}
	return s
}

func TestSchema(t *testing.T) {
	tests := []struct {
		apiVersion, kind, path string
		wantType, wantFormat   string
	}{
		{"apps/v1", "Deployment", "", "object", ""},
		{"apps/v1", "Deployment", "spec.replicas", "integer", "int32"},
		{"apps/v1", "Deployment", "spec.strategy.rollingUpdate.maxSurge", "", "int-or-string"},
		{"apps/v1", "Deployment", "spec.template.spec.containers", "array", ""},
		{"apps/v1", "Deployment", "spec.template.spec.containers.[].resources.limits.{}", "", ""},
		{"apps/v1", "Deployment", "metadata.labels.{}", "string", ""},
		{"v1", "Pod", "spec.containers.[].image", "string", ""},
		{"v1", "Pod", "metadata.creationTimestamp", "string", "date-time"},
		{"v1", "ConfigMap", "data.{}", "string", ""},
		{"v1", "ConfigMap", "binaryData.{}", "string", "byte"},
		{"batch/v1", "CronJob", "spec.jobTemplate.spec.template.spec.hostNetwork", "boolean", ""},
		{"v1", "Event", "count", "integer", "int32"},
		{"events.k8s.io/v1", "Event", "deprecatedCount", "integer", "int32"},
		{"apiregistration.k8s.io/v1", "APIService", "spec.insecureSkipTLSVerify", "boolean", ""},
		// What is part of itself ends there.
		{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec.versions.[].schema.openAPIV3Schema.properties.{}", "object", ""},
	}
	for _, test := range tests {
		found, err := builtin.Schema(schema.FromAPIVersionAndKind(test.apiVersion, test.kind))
		if err != nil {
			t.Error(err)
			continue
		}
		got := at(t, found, test.path)
		if strings.Join(got.Type, ",") != test.wantType {
			t.Errorf("%s %s: got type %v, want %s", test.kind, test.path, got.Type, test.wantType)
		}
		if got.Format != test.wantFormat {
			t.Errorf("%s %s: got format %q, want %q", test.kind, test.path, got.Format, test.wantFormat)
		}
	}
}

// TestEverySchema wants a schema for every kind that is served, without references
// and with what every object has.
func TestEverySchema(t *testing.T) {
	for line := range strings.Lines(served) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		kind := schema.FromAPIVersionAndKind(fields[0], fields[3])
		found, err := builtin.Schema(kind)
		if err != nil {
			t.Error(err)
			continue
		}
		if ref := firstRef(found); ref != "" {
			t.Errorf("%v: the reference to %s is left", kind, ref)
		}
		for _, name := range []string{"apiVersion", "kind"} {
			if got := at(t, found, name); !slices.Equal(got.Type, spec.StringOrArray{"string"}) {
				t.Errorf("%v: %s has type %v", kind, name, got.Type)
			}
		}
	}
}

func firstRef(s *spec.Schema) string {
	if ref := s.Ref.String(); ref != "" {
		return ref
	}
	inner := slices.Concat(s.AllOf, s.AnyOf, s.OneOf)
	for _, property := range s.Properties {
		inner = append(inner, property)
	}
	if s.Items != nil {
		inner = append(inner, *s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		inner = append(inner, *s.AdditionalProperties.Schema)
	}
	for i := range inner {
		if ref := firstRef(&inner[i]); ref != "" {
			return ref
		}
	}
	return ""
}

func TestNoSchema(t *testing.T) {
	for _, kind := range []schema.GroupVersionKind{
		{},
		{Kind: "Pod"},
		{Version: "v2", Kind: "Pod"},
		{Version: "v1", Kind: "PodList"},
		{Group: "autoscaling", Version: "v1", Kind: "Scale"},
		{Group: "apps", Version: "v1beta1", Kind: "Deployment"},
		{Group: "example.com", Version: "v1", Kind: "Gadget"},
	} {
		if found, err := builtin.Schema(kind); !errors.Is(err, resolver.ErrSchemaNotFound) {
			t.Errorf("%v: got %v, %v, want no schema", kind, found, err)
		}
	}
}

func TestSchemaConcurrently(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		for _, kind := range []string{"Pod", "Service", "Node", "Secret"} {
			group.Go(func() {
				if _, err := builtin.Schema(schema.GroupVersionKind{Version: "v1", Kind: kind}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
}

func TestObjectMeta(t *testing.T) {
	metadata, err := builtin.ObjectMeta()
	if err != nil {
		t.Fatal(err)
	}
	if got := at(t, metadata, "ownerReferences.[].controller"); !slices.Equal(got.Type, spec.StringOrArray{"boolean"}) {
		t.Errorf("got %v", got)
	}
}

func BenchmarkSchema(b *testing.B) {
	for _, kind := range []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Pod"}} {
		b.Run(kind.Kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := builtin.Schema(kind); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
