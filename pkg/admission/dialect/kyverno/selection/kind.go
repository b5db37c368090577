// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind that a rule may be about, with the wildcards that the rule has.
type Kind struct {
	Group, Version, Kind, Subresource string
	// Operations are those of the requests; none means all.
	Operations []string
	// Names and Namespaces, with wildcards, and Labels are what the objects have that the
	// rule may be about: one name, one namespace and all labels. None means any.
	Names, Namespaces []string
	Labels            map[string]string
}

const ephemeralContainers = "ephemeralcontainers"

func isPod(kind schema.GroupVersionKind) bool {
	return kind == schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
}

// kind is a compiled entry of kinds.
type kind struct {
	group, version, kind, subresource glob

	text string
}

// isVersion tells v1/Pod from Pod/status, as Kyverno's ParseKindSelector does.
func isVersion(text string) bool {
	if text == "*" {
		return true
	}
	digits, ok := strings.CutPrefix(text, "v")
	for _, stage := range []string{"alpha", "beta"} {
		if major, minor, found := strings.Cut(digits, stage); found {
			return ok && isNumber(major) && isNumber(minor)
		}
	}
	return ok && isNumber(digits)
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// parseKind reads Kind, version/Kind and group/version/Kind, each with /subresource or
// .subresource. */* is everything, and */ before a name in lower case is a subresource
// of any kind.
func parseKind(text string) (kind, error) {
	parts := strings.Split(text, "/")
	last := len(parts) - 1
	parts = append(parts[:last], strings.Split(parts[last], ".")...)
	if slices.Contains(parts, "") {
		return kind{}, fmt.Errorf("a kind is Kind, version/Kind or group/version/Kind, each with /subresource: a part of %q is empty", text)
	}
	group, version, subresource := "*", "*", ""
	var name string
	switch len(parts) {
	case 1:
		name = parts[0]
	case 2:
		switch {
		case text == "*/*":
			name, subresource = "*", "*"
		case parts[0] == "*" && strings.ToLower(parts[1]) == parts[1]:
			name, subresource = parts[0], parts[1]
		case isVersion(parts[0]):
			version, name = parts[0], parts[1]
		default:
			name, subresource = parts[0], parts[1]
		}
	case 3:
		if isVersion(parts[0]) {
			version, name, subresource = parts[0], parts[1], parts[2]
		} else {
			group, version, name = parts[0], parts[1], parts[2]
		}
	case 4:
		group, version, name, subresource = parts[0], parts[1], parts[2], parts[3]
	default:
		return kind{}, fmt.Errorf("a kind is Kind, version/Kind or group/version/Kind, each with /subresource: %q has too many parts", text)
	}
	return kind{newGlob(group), newGlob(version), newGlob(name), newGlob(subresource), text}, nil
}

// KindName returns the name of the kind in an entry of kinds, without group, version and
// subresource; it is empty for what is no such entry.
func KindName(text string) string {
	parsed, err := parseKind(text)
	if err != nil {
		return ""
	}
	return parsed.kind.text
}

// mayTake says whether the selector is about the subresource, for objects of some kinds
// at least. The ephemeral containers of Pods belong to whatever selects Pods.
func (k *kind) mayTake(subresource string) bool {
	return k.subresource.match(subresource) || subresource == ephemeralContainers
}

func (k *kind) match(of schema.GroupVersionKind, subresource string) bool {
	return k.kind.match(of.Kind) && k.group.match(of.Group) && k.version.match(of.Version) &&
		(k.subresource.match(subresource) || subresource == ephemeralContainers && isPod(of))
}

// Kinds returns what finds the requests that the rule may be about: each of them is of
// one of these kinds. Requests for subresources have the kind of the object to which
// the subresource belongs. A rule that cannot be used is about all objects of its kinds.
func (s *Selection) Kinds() []Kind {
	if s == nil {
		return nil
	}
	if s.unknown {
		return []Kind{{Group: "*", Version: "*", Kind: "*", Subresource: "*"}}
	}
	kinds := s.kinds()
	if s.broken != nil {
		for i := range kinds {
			kinds[i].Names, kinds[i].Namespaces, kinds[i].Labels = nil, nil, nil
		}
	}
	return kinds
}

func (s *Selection) kinds() []Kind {
	var kinds []Kind
	for i := range s.match.filters {
		f := &s.match.filters[i]
		if s.match.any {
			kinds = f.appendKinds(kinds, f.operations)
			continue
		}
		// All filters must match: one of them is enough to find the requests.
		if kinds == nil {
			kinds = f.appendKinds(nil, s.match.operations())
		}
	}
	return kinds
}

// operations returns those of the first filter that names any.
func (b *block) operations() []string {
	for i := range b.filters {
		if len(b.filters[i].operations) > 0 {
			return b.filters[i].operations
		}
	}
	return nil
}

func (f *filter) appendKinds(kinds []Kind, operations []string) []Kind {
	if f.isEmpty() {
		return kinds
	}
	found := Kind{Group: "*", Version: "*", Kind: "*", Subresource: "*", Operations: operations}
	found.Names, found.Namespaces, found.Labels = texts(f.names), texts(f.namespaces), f.selector.exactly()
	if len(found.Names) == 0 {
		found.Names = texts(f.anyName)
	}
	if len(f.kinds) == 0 {
		return append(kinds, found)
	}
	ephemeral := false
	for i := range f.kinds {
		k := &f.kinds[i]
		found.Group, found.Version, found.Kind, found.Subresource = k.group.text, k.version.text, k.kind.text, k.subresource.text
		kinds = append(kinds, found)
		ephemeral = ephemeral || !k.subresource.match(ephemeralContainers) && k.kind.match("Pod") && k.group.match("") && k.version.match("v1")
	}
	if ephemeral {
		found.Group, found.Version, found.Kind, found.Subresource = "", "v1", "Pod", ephemeralContainers
		kinds = append(kinds, found)
	}
	return kinds
}
