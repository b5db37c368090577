// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// contextCharacters are those of names of variables, beside letters and digits. A dot
// puts one variable into another.
const contextCharacters = "_-."

// maxContextEntries bounds the variables of one context. Kyverno has no such limit.
const maxContextEntries = 1000

// The methods of an apiCall; GET when absent.
const (
	methodGet  = "GET"
	methodPost = "POST"
)

func (v *ruleValidator) validateContext(entries []kyvernov1.ContextEntry, path *field.Path) field.ErrorList {
	if len(entries) > maxContextEntries {
		return field.ErrorList{field.TooMany(path, len(entries), maxContextEntries)}
	}
	var errs field.ErrorList
	for i := range entries {
		entry, entryPath := &entries[i], path.Index(i)
		errs = append(errs, validateContextName(entry.Name, entryPath.Child("name"))...)
		errs = append(errs, v.validateContextSource(entry, entryPath)...)
	}
	return errs
}

func validateContextName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a variable needs a name")}
	}
	unfit := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(contextCharacters, r)
	}
	if strings.ContainsFunc(name, unfit) || slices.Contains(strings.Split(name, "."), "") {
		return field.ErrorList{field.Invalid(path, name, "must be of letters, digits, '_' and '-', with dots between them")}
	}
	first, _, _ := strings.Cut(name, ".")
	if slices.Contains([]string{"images", "request", "serviceAccountName", "serviceAccountNamespace", "element", "elementIndex"}, first) {
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("%s is there already: choose another name", first))}
	}
	return nil
}

// validateContextSource wants exactly one source of the value, of those that there are.
func (v *ruleValidator) validateContextSource(entry *kyvernov1.ContextEntry, path *field.Path) field.ErrorList {
	const sources = "exactly one of variable, configMap and apiCall"
	var errs field.ErrorList
	var given []string
	if entry.Variable != nil {
		given = append(given, "variable")
		errs = append(errs, validateVariableEntry(entry.Variable, path.Child("variable"))...)
	}
	if entry.ConfigMap != nil {
		given = append(given, "configMap")
		errs = append(errs, v.validateConfigMap(entry.ConfigMap, path.Child("configMap"))...)
	}
	if entry.APICall != nil {
		given = append(given, "apiCall")
		errs = append(errs, validateAPICall(entry.APICall, path.Child("apiCall"))...)
	}
	refused := false
	if entry.ImageRegistry != nil {
		refused = true
		errs = append(errs, field.Forbidden(path.Child("imageRegistry"), "image registries are not reached from here: use images, or put what is needed into a ConfigMap"))
	}
	if entry.GlobalReference != nil {
		refused = true
		errs = append(errs, field.Forbidden(path.Child("globalReference"), "there are no GlobalContextEntries here: use an apiCall with a urlPath, or a ConfigMap"))
	}
	if len(given) == 0 && !refused {
		return append(errs, field.Required(path, sources+" is needed"))
	}
	for _, name := range given[min(1, len(given)):] {
		errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("%s is given already, and %s is allowed", given[0], sources)))
	}
	return errs
}

func validateVariableEntry(variable *kyvernov1.Variable, path *field.Path) field.ErrorList {
	switch {
	case variable.JMESPath != "":
		return nil
	case variable.Default != nil:
		return field.ErrorList{field.Required(path.Child("jmesPath"), "a default is for an expression that finds nothing")}
	case variable.Value == nil:
		return field.ErrorList{field.Required(path, "a value or a jmesPath is needed")}
	default:
		return nil
	}
}

// validateConfigMap keeps a Policy in its namespace. Variables are asked when a
// request comes.
func (v *ruleValidator) validateConfigMap(reference *kyvernov1.ConfigMapReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if reference.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "name the ConfigMap"))
	}
	if namespace := reference.Namespace; v.namespaced && namespace != "" && namespace != v.namespace && !hasVariable(namespace) {
		errs = append(errs, field.Invalid(path.Child("namespace"), namespace,
			fmt.Sprintf("a Policy reads ConfigMaps of its own namespace %q only: leave it empty, or write a ClusterPolicy", v.namespace)))
	}
	return errs
}

func validateAPICall(call *kyvernov1.APICall, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if call.Service != nil {
		errs = append(errs, field.Forbidden(path.Child("service"), "services are not called from here: use a urlPath of the API of the cluster"))
	} else if call.URLPath == "" {
		errs = append(errs, field.Required(path.Child("urlPath"), "give a path of the API of the cluster, such as /api/v1/namespaces"))
	}
	switch call.Method {
	case "", methodGet:
		if len(call.Data) > 0 {
			errs = append(errs, field.Forbidden(path.Child("data"), "only a POST has data: set method to POST, or remove it"))
		}
	case methodPost:
	default:
		errs = append(errs, field.NotSupported(path.Child("method"), call.Method, []string{methodGet, methodPost}))
	}
	keys := sets.New[string]()
	for i, data := range call.Data {
		dataPath := path.Child("data").Index(i)
		switch {
		case data.Key == "":
			errs = append(errs, field.Required(dataPath.Child("key"), "name the field of the body"))
		case keys.Has(data.Key):
			errs = append(errs, field.Duplicate(dataPath.Child("key"), data.Key))
		}
		keys.Insert(data.Key)
		if data.Value == nil {
			errs = append(errs, field.Required(dataPath.Child("value"), ""))
		}
	}
	return errs
}
