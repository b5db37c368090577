// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload sets the defaults of the kinds that run pods, as far as
// policies are likely to read them. It does not know what other built-in kinds
// have for defaults, leaves out those of probes, volumes and resource requests, and
// does not do what controllers and admission plugins do.
package workload

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Default returns obj with its defaults, or obj itself when its kind has none
// here. It does not modify obj.
func Default(obj *unstructured.Unstructured) *unstructured.Unstructured {
	rules := rulesOf(obj.GroupVersionKind())
	if len(rules) == 0 {
		return obj
	}
	obj = obj.DeepCopy()
	for _, r := range rules {
		r.apply(obj.Object, strings.Split(r.path, "."))
	}
	return obj
}

// rule is the default of one field. It has an effect where the field is absent,
// null or an empty string, and that in which it lies is there: [] stands for each
// item of a list.
type rule struct {
	path  string
	value any // or a choice
}

// choice returns the default of a field that depends on its siblings, or nil.
type choice func(siblings map[string]any) any

func (r rule) apply(fields map[string]any, path []string) {
	if len(path) == 1 {
		r.set(fields, path[0])
		return
	}
	name, each := strings.CutSuffix(path[0], "[]")
	if !each {
		if inner, ok := fields[name].(map[string]any); ok {
			r.apply(inner, path[1:])
		}
		return
	}
	items, _ := fields[name].([]any)
	for _, item := range items {
		if inner, ok := item.(map[string]any); ok {
			r.apply(inner, path[1:])
		}
	}
}

func (r rule) set(fields map[string]any, name string) {
	if fields[name] != nil && fields[name] != "" {
		return
	}
	value := r.value
	if choose, ok := value.(choice); ok {
		value = choose(fields)
	}
	if value != nil {
		fields[name] = runtime.DeepCopyJSONValue(value)
	}
}

// where is value for those whose sibling is what it says.
func where(sibling string, is, value any) choice {
	return func(siblings map[string]any) any {
		if siblings[sibling] == is {
			return value
		}
		return nil
	}
}

// pullPolicy is that of the tag of an image: without a tag and a digest it is
// latest.
func pullPolicy(container map[string]any) any {
	image, _ := container["image"].(string)
	image, _, isDigest := strings.Cut(image, "@")
	_, tag, isTagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if tag == "latest" || image != "" && !isTagged && !isDigest {
		return "Always"
	}
	return "IfNotPresent"
}
