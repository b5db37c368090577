// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/template"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// configMap is the source of an entry that is a ConfigMap.
type configMap struct {
	name      *template.Template
	namespace *template.Template
	policy    string // the namespace of a namespaced Policy
}

func (c *compiler) configMap(spec *kyvernov1.ConfigMapReference) source {
	const place = "configMap"
	compiled := &configMap{
		name:      c.template(spec.Name, place, "name"),
		namespace: c.template(spec.Namespace, place, "namespace"),
		policy:    c.namespace,
	}
	path := c.path.Child(place)
	if spec.Name == "" {
		c.errs = append(c.errs, field.Required(path.Child("name"), "the name of the ConfigMap"))
	}
	read := policy.Read{Field: path, Verb: verbGet, Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}}
	read.Name = static(compiled.name)
	if namespace, ok := compiled.namespace.Static(); ok {
		var err error
		if read.Namespace, err = compiled.within(namespace); err != nil {
			c.errs = append(c.errs, field.Invalid(path.Child("namespace"), spec.Namespace, err.Error()))
		}
	} else {
		read.Namespace = c.namespace
	}
	c.reads = append(c.reads, read)
	return compiled
}

// static returns the text of a template that is the same for all requests, and "" for one
// that is not.
func static(t *template.Template) string {
	value, _ := t.Static()
	fixed, _ := value.(string)
	return fixed
}

// within returns the namespace that is meant by the value of the field: that of the
// policy, or default, when it is empty.
func (s *configMap) within(value any) (string, error) {
	namespace, ok := value.(string)
	switch {
	case !ok:
		return "", fmt.Errorf("a string is needed, and the variables give %s", typeOf(value))
	case s.policy == "" && namespace == "":
		return metav1.NamespaceDefault, nil
	case s.policy != "" && namespace != "" && namespace != s.policy:
		return "", fmt.Errorf("a Policy of namespace %s reads no ConfigMap of namespace %s", s.policy, namespace)
	case namespace == "":
		return s.policy, nil
	}
	return namespace, nil
}

// value implements source. It is {data, metadata}, where data is null for a ConfigMap
// without any; its texts are texts, whatever they hold.
func (s *configMap) value(ctx context.Context, from horizon) (any, error) {
	name, err := text(ctx, s.name, from)
	if err != nil {
		return nil, fmt.Errorf("configMap.name: %w", err)
	}
	if name == "" {
		return nil, errors.New("configMap.name: the variables leave it empty")
	}
	given, err := render(ctx, s.namespace, from)
	if err != nil {
		return nil, fmt.Errorf("configMap.namespace: %w", err)
	}
	namespace, err := s.within(given)
	if err != nil {
		return nil, fmt.Errorf("configMap.namespace: %w: %w", errRefused, err)
	}
	if err := from.v.reads(ctx, verdict.ParamRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name}); err != nil {
		return nil, err
	}
	found, err := from.v.in.View.Objects(ctx, cluster.Selection{
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: namespace, Name: name,
	})
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", namespace, name, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("ConfigMap %s/%s does not exist", namespace, name)
	}
	object := found[0].Object
	return map[string]any{"data": object["data"], "metadata": object["metadata"]}, nil
}
