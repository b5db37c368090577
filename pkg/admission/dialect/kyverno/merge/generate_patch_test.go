// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"maps"
	"slices"
)

// patch returns a patch for a value of an object, which is that of a field.
func (g *generator) patch(value any, field string) any {
	switch value := value.(type) {
	case map[string]any:
		return g.patchMap(value)
	case []any:
		return g.patchList(value, field)
	default:
		if g.chance(5) {
			return g.tree(1)
		}
		return g.scalar()
	}
}

func (g *generator) patchMap(value map[string]any) map[string]any {
	patch := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(value)) {
		switch {
		case key == "apiVersion" || key == "kind" || g.chance(40):
		case g.chance(5):
			patch[key] = nil
		case g.chance(1):
			patch[key] = pick[any](g, g.scalar(), g.tree(1))
		default:
			patch[key] = g.patch(value[key], key)
		}
	}
	if _, ok := value["containers"]; ok && g.chance(30) {
		spec := g.podSpec()
		maps.DeleteFunc(spec, func(key string, _ any) bool { _, ok := value[key]; return ok })
		maps.Copy(patch, spec)
	}
	if g.chance(20) {
		patch[pick(g, "a", "b", "new")] = g.added(2)
	}
	return patch
}

// added returns what may be added, which has directives of its own.
func (g *generator) added(depth int) any {
	value := g.value(depth)
	if m, ok := value.(map[string]any); ok && g.chance(20) {
		m[directiveKey] = g.directive()
	}
	return value
}

func (g *generator) directive() any { return pick(g, "merge", "replace", "delete") }

// keys returns the keys of a list, of which the first element is given.
func (g *generator) keys(field string, first map[string]any) []string {
	switch field {
	case "volumeMounts":
		return []string{"mountPath"}
	case "ports":
		if _, ok := first["port"]; ok {
			return []string{"port", "protocol"}
		}
		return []string{"containerPort", "protocol"}
	case "hostAliases":
		return []string{"ip"}
	case "ownerReferences":
		return []string{"uid"}
	case "topologySpreadConstraints":
		return []string{"topologyKey", "whenUnsatisfiable"}
	default:
		return []string{"name"}
	}
}

func (g *generator) patchList(value []any, field string) []any {
	if field == "finalizers" {
		return g.directList(g.elements(field))
	}
	if len(value) == 0 && (field == "ports" || field == "tolerations") {
		return value
	}
	if len(value) == 0 && len(field) > 1 {
		return g.directList(g.elements(field))
	}
	first, isMap := map[string]any(nil), false
	if len(value) > 0 {
		first, isMap = value[0].(map[string]any)
	}
	if len(field) <= 1 || !isMap || field == "tolerations" {
		return []any{g.value(1), g.value(1)}[:g.IntN(3)]
	}
	keys := g.keys(field, first)
	patch := []any{}
	for _, at := range g.Perm(len(value)) {
		if g.chance(40) {
			continue
		}
		if element, ok := value[at].(map[string]any); ok {
			patch = append(patch, g.patchElement(element, keys))
		}
	}
	return g.directList(g.moreElements(patch, field, keys))
}

func (g *generator) patchElement(element map[string]any, keys []string) any {
	patch := g.patchMap(element)
	complete := true
	for _, key := range keys {
		delete(patch, key)
		if text, ok := element[key]; ok {
			patch[key] = text
		} else {
			complete = false
		}
	}
	// With kyaml, an element of two keys of which one is missing may not be found.
	if complete && g.chance(15) {
		patch[directiveKey] = g.directive()
	}
	return patch
}

// moreElements adds elements that the object may not have, each with a key of its own.
func (g *generator) moreElements(patch []any, field string, keys []string) []any {
	taken := map[string]bool{}
	identity := func(element any) string {
		m, _ := element.(map[string]any)
		var id string
		for _, key := range keys {
			id += text(m[key]) + "/"
		}
		return id
	}
	for _, element := range patch {
		taken[identity(element)] = true
	}
	if field == "ports" {
		field = keys[0]
	}
	for _, element := range g.elements(field) {
		if taken[identity(element)] {
			continue
		}
		if m, ok := element.(map[string]any); ok && g.chance(30) {
			m[pick(g, "new", "image", "env")] = nil
			if g.chance(30) && len(keys) == 1 {
				m[directiveKey] = g.directive()
			}
		}
		patch = slices.Insert(patch, g.IntN(len(patch)+1), element)
	}
	return patch
}

// directList perhaps adds a directive for a whole list. With kyaml, it then also takes
// away the elements that have the same directive, and lists without keys it leaves alone.
func (g *generator) directList(patch []any) []any {
	if !g.builtIn || !g.chance(10) {
		return patch
	}
	for _, element := range patch {
		if m, ok := element.(map[string]any); ok {
			delete(m, directiveKey)
		}
	}
	return slices.Insert(patch, g.IntN(len(patch)+1), any(map[string]any{directiveKey: g.directive()}))
}
