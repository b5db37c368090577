// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy_test reads the manifests. What a cluster makes of them is for the
// end-to-end tests.
package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// installed are the folders of artifacts/deploy that everybody applies.
var installed = []string{"etcd", "server", "registration"}

// TestPhases: both phases are asked about the same requests, in the same way. A request
// that one of them misses would be changed and not judged, or the other way round.
func TestPhases(t *testing.T) {
	mutating, validating := webhook(t, "mutating.yaml"), webhook(t, "validating.yaml")
	if got := mutating["reinvocationPolicy"]; got != "IfNeeded" {
		t.Errorf("mutating.yaml has reinvocationPolicy %v, want IfNeeded", got)
	}
	delete(mutating, "reinvocationPolicy") // there is none when validating
	for field, want := range map[string][2]any{
		"name": {"mutations.policy.portcullis.dev", "validations.policy.portcullis.dev"},
		"clientConfig": {
			door("/apis/policy.portcullis.dev/v1alpha1/mutations"),
			door("/apis/policy.portcullis.dev/v1alpha1/validations"),
		},
	} {
		if got := [2]any{mutating[field], validating[field]}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", field, got, want)
		}
		delete(mutating, field)
		delete(validating, field)
	}
	if !reflect.DeepEqual(mutating, validating) {
		t.Errorf("what is asked about differs:\nmutating.yaml   %v\nvalidating.yaml %v", mutating, validating)
	}
}

// door is how kube-apiserver reaches a resource of the API group: by way of itself.
func door(path string) map[string]any {
	return map[string]any{"service": map[string]any{"name": "kubernetes", "namespace": "default", "path": path, "port": int64(443)}}
}

// webhook is the only one of a file in registration.
func webhook(t *testing.T, file string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("registration", file))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := yaml.ToJSON(content)
	if err != nil {
		t.Fatal(err)
	}
	var configuration struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Webhooks []map[string]any  `json:"webhooks"`
	}
	if err := utiljson.Unmarshal(encoded, &configuration); err != nil {
		t.Fatal(err)
	}
	if configuration.Metadata.Name != "portcullis" || len(configuration.Webhooks) != 1 {
		t.Fatalf("%s: got %+v, want one webhook of portcullis", file, configuration)
	}
	return configuration.Webhooks[0]
}

// TestExclusions: the registrations leave out exactly the roles and bindings of whole
// clusters that are installed. What has a name that nobody has taken would not be judged.
func TestExclusions(t *testing.T) {
	for resource, kind := range map[string]string{"clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding"} {
		want := namesOf(t, kind)
		if len(want) < 3 {
			t.Fatalf("of %s there is only %q: they are not found any more", kind, want)
		}
		for _, file := range []string{filepath.Join("registration", "validating.yaml"), filepath.Join("registration", "mutating.yaml")} {
			if got := excluded(t, file, resource); !slices.Equal(got, want) {
				t.Errorf("%s leaves out the %s %q, installed are %q", file, resource, got, want)
			}
		}
	}
}

// namesOf are the names of all installed objects of a kind, sorted.
func namesOf(t *testing.T, kind string) []string {
	t.Helper()
	var names []string
	for _, folder := range installed {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)); ; {
				var object metav1.PartialObjectMetadata
				if err := documents.Decode(&object); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if object.Kind == kind {
					names = append(names, object.Name)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(names)
	return names
}

// excluded are the names in the list of a resource in a match condition, sorted.
func excluded(t *testing.T, file, resource string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`"`+resource+`" && request\.name in\s*\[([^\]]*)\]`).FindAllSubmatch(content, -1)
	if len(lists) != 1 {
		t.Fatalf("%s has %d lists of %s, want one", file, len(lists), resource)
	}
	var names []string
	for _, name := range regexp.MustCompile(`"([^"]*)"`).FindAllSubmatch(lists[0][1], -1) {
		names = append(names, string(name[1]))
	}
	slices.Sort(names)
	return names
}
