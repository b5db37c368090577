// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// TestSchemas walks over kyaml's schemas of all kinds, and finds in the table the lists
// that are merged, with their keys, and no others.
func TestSchemas(t *testing.T) {
	t.Parallel()
	if len(kinds) < 250 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	var lists int
	for _, k := range kinds {
		theirs := openapi.SchemaForResourceType(yaml.TypeMeta{APIVersion: k.apiVersion, Kind: k.name})
		ours := schemaOf(k.apiVersion, k.name)
		if theirs == nil || ours == nil {
			t.Errorf("%s %s: kyaml has %v, the table %v", k.apiVersion, k.name, theirs, ours)
			continue
		}
		lists += compare(t, k.apiVersion+" "+k.name, ours, theirs, 9)
	}
	if lists < 400 {
		t.Errorf("only %d lists were found", lists)
	}
	for _, unknown := range [][2]string{{"v1", "Pods"}, {"v2", "Pod"}, {"example.com/v1", "Widget"}, {"", ""}, {"zzz/v1", "Z"}} {
		if s := schemaOf(unknown[0], unknown[1]); s != nil {
			t.Errorf("%v has the schema %v", unknown, s)
		}
	}
}

// compare returns how many lists that are merged were found down to a depth.
func compare(t *testing.T, path string, ours *schema, theirs *openapi.ResourceSchema, depth int) int {
	t.Helper()
	strategy, keys := theirs.PatchStrategyAndKeyList()
	merged := slices.Contains(strings.Split(strategy, ","), "merge") && theirs.Elements() != nil
	if merged != ours.isMerged() {
		t.Errorf("%s: kyaml merges: %v, the table: %v", path, merged, ours.isMerged())
	}
	if depth == 0 {
		return 0
	}
	var lists int
	if merged {
		lists++
		var names []string
		for _, key := range ours.keys {
			names = append(names, key.name)
			if (key.fallback == "TCP") != (key.name == "protocol") {
				t.Errorf("%s: %s is %q when left out", path, key.name, key.fallback)
			}
		}
		if !slices.Equal(names, keys) {
			t.Errorf("%s: kyaml has the keys %v, the table %v", path, keys, names)
		}
		lists += compare(t, path+"[]", &schemas[ours.elements], theirs.Elements(), depth-1)
	}
	for name := range theirs.Schema.Properties {
		if field := theirs.Field(name); field != nil {
			lists += compare(t, path+"."+name, ours.field(name), field, depth-1)
		}
	}
	if values := theirs.Field("any other name"); values != nil {
		lists += compare(t, path+"[*]", ours.field("any other name"), values, depth-1)
	}
	return lists
}
