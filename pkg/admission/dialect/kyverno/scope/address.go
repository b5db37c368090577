// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// anything stands in an address for what variables decide. No path can have it.
const anything = "*"

// maxPath is the length of the longest urlPath.
const maxPath = 8 << 10

// address is what the path of a request to the API server names: an object, or with an
// empty name the objects of a resource, in one namespace or, when that is empty, in all
// of them or in none.
type address struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// wide is the address of a path of which variables decide all.
func wide(name string) address {
	return address{
		resource:  schema.GroupVersionResource{Group: anything, Version: anything, Resource: anything},
		namespace: anything, name: name,
	}
}

// covers says whether b is one of the addresses that a may become. A variable in the
// place of a namespace is one namespace; only a wide address may become one of all.
func (a address) covers(b address) bool {
	namespace := fits(a.namespace, b.namespace)
	if a.namespace == anything && b.namespace == "" {
		namespace = a.resource.Group == anything
	}
	return namespace && fits(a.resource.Group, b.resource.Group) && fits(a.resource.Version, b.resource.Version) &&
		fits(a.resource.Resource, b.resource.Resource) && (a.name == "") == (b.name == "") && fits(a.name, b.name)
}

// isNamespace says whether the address may be that of a Namespace.
func (a address) isNamespace(name string) bool {
	return a.namespace == "" && a.name != "" && fits(a.name, name) &&
		a.resource.Group == "" && fits(a.resource.Resource, "namespaces")
}

func fits(pattern, text string) bool { return pattern == anything || pattern == text }

// String describes an address for messages.
func (a address) String() string {
	text := a.resource.GroupResource().String()
	if a.name != "" {
		text += fmt.Sprintf(" %q", a.name)
	}
	if a.namespace != "" {
		text += " of namespace " + a.namespace
	}
	return text
}

// parseAddress parses a urlPath without variables. The selector is nil for one object.
// What it refuses, such as a subresource, could be asked of an API server, but not of a
// view.
func parseAddress(text string) (address, labels.Selector, error) {
	if len(text) > maxPath {
		return address{}, nil, fmt.Errorf("the path is longer than %d bytes", maxPath)
	}
	plain, query, _ := strings.Cut(text, "?")
	segments, err := splitPath(plain)
	if err != nil {
		return address{}, nil, err
	}
	parsed, err := addressOf(segments)
	if err != nil {
		return address{}, nil, err
	}
	selector, err := parseQuery(query, parsed.name == "")
	if err != nil {
		return address{}, nil, err
	}
	return parsed, selector, nil
}

// splitPath returns the segments of a path. Those that would lead elsewhere are refused,
// also when they are escaped.
func splitPath(text string) ([]string, error) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return nil, fmt.Errorf("the path %q does not begin with /", text)
	}
	segments := strings.Split(rest, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return nil, fmt.Errorf("the path %q: %w", text, err)
		}
		faults := content.IsPathSegmentName(plain)
		switch {
		case plain == "":
			faults = []string{"it is empty"}
		case strings.ContainsAny(plain, anything+"?#"):
			faults = []string{"it has one of the characters * ? #"}
		}
		if len(faults) > 0 {
			return nil, fmt.Errorf("the path %q has the part %q: %s", text, plain, faults[0])
		}
		segments[i] = plain
	}
	return segments, nil
}

// parseQuery returns the selector of a list, and nil for an object.
func parseQuery(query string, lists bool) (labels.Selector, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("the query %q: %w", query, err)
	}
	selecting := values["labelSelector"]
	if len(values) > min(len(selecting), 1) || len(selecting) > 1 || len(selecting) == 1 && !lists {
		return nil, fmt.Errorf("the query %q is not supported: a list takes one labelSelector, and nothing else", query)
	}
	var selector labels.Selector
	if lists {
		if selector, err = labels.Parse(values.Get("labelSelector")); err != nil {
			return nil, fmt.Errorf("the labelSelector of the query %q: %w", query, err)
		}
	}
	return selector, nil
}

// addressOf returns what the segments of a path name, as NewRequestInfo in
// k8s.io/apiserver/pkg/endpoints/request reads them. Segments may be anything.
func addressOf(segments []string) (address, error) {
	var found address
	switch {
	case segments[0] == "api" && len(segments) > 2:
		found.resource.Version = segments[1]
		segments = segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		found.resource.Group, found.resource.Version = segments[1], segments[2]
		segments = segments[3:]
	default:
		return address{}, fmt.Errorf("the path /%s names no resource: it begins with /api/VERSION/RESOURCE or /apis/GROUP/VERSION/RESOURCE, and discovery is not supported", strings.Join(segments, "/"))
	}
	if len(segments) > 2 && fits(segments[0], "namespaces") {
		if found.resource.Group == "" && len(segments) == 3 && (segments[2] == "status" || segments[2] == "finalize") {
			return address{}, subresourceError(segments[2])
		}
		found.namespace = segments[1]
		segments = segments[2:]
	}
	switch found.resource.Resource = segments[0]; {
	case found.resource.Resource == "watch" || found.resource.Resource == "proxy":
		return address{}, fmt.Errorf("the path is one of %s, which is not supported", found.resource.Resource)
	case len(segments) > 2:
		return address{}, subresourceError(strings.Join(segments[2:], "/"))
	case len(segments) == 2:
		found.name = segments[1]
	}
	return found, nil
}

func subresourceError(name string) error {
	return fmt.Errorf("the path names the subresource %q: subresources are not supported", name)
}
