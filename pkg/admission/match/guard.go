// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// guard tells without a look at the criteria that they do not select an object, so that
// an index passes over very many that do not. Each field is a set of bits that stand for
// texts, several for the same bit: a guard may let an object pass that the criteria do
// not select, and never the other way round. The zero guard lets all pass.
type guard struct {
	// places are the namespaces, and names the names, of which the object has one. No
	// bits ask for nothing.
	places, names uint64
	// labels are those that the object has, all of them.
	labels uint64
}

// traits are what guards ask for. Both bits of a name or a namespace may be asked for.
type traits struct {
	places, names, labels uint64
	// unknown says that there is no object to know them of.
	unknown bool
}

func (g *guard) lets(t *traits) bool {
	return t.unknown || (g.places == 0 || g.places&t.places != 0) && (g.names == 0 || g.names&t.names != 0) && g.labels&^t.labels == 0
}

// or returns the guard that lets pass what either does.
func (g guard) or(other guard) guard {
	either := guard{places: g.places | other.places, names: g.names | other.names, labels: g.labels & other.labels}
	if g.places == 0 || other.places == 0 {
		either.places = 0
	}
	if g.names == 0 || other.names == 0 {
		either.names = 0
	}
	return either
}

// guardOf returns the guard of a kind.
func guardOf(kind *Kind) guard {
	g := guard{places: bitsOf(kind.Namespaces), names: bitsOf(kind.Names)}
	for key, value := range kind.Labels {
		g.labels |= bitsOfLabel(key, value)
	}
	return g
}

// headLength is how many characters tell names with wildcards apart.
const headLength = 4

// bitsOf returns bits of which a text that matches one of the patterns has one, or none
// if that could be any text.
func bitsOf(patterns []string) uint64 {
	var all uint64
	for _, pattern := range patterns {
		end := strings.IndexAny(pattern, "*?")
		switch {
		case end < 0:
			all |= bit(pattern)
		case end < headLength:
			return 0
		default:
			all |= bit(pattern[:headLength])
		}
	}
	return all
}

// bitsFor returns the bits of a text: those of itself and of its first characters.
func bitsFor(text string) uint64 {
	if len(text) < headLength {
		return bit(text)
	}
	return bit(text) | bit(text[:headLength])
}

// bitsOfLabel returns two bits, so that few labels stand for others.
func bitsOfLabel(key, value string) uint64 { return bit(key, value) | bit(value, key) }

// bit stands for texts. It is made of them with FNV-1a.
func bit(texts ...string) uint64 {
	hash := uint32(2166136261)
	for _, text := range texts {
		for i := range len(text) {
			hash = (hash ^ uint32(text[i])) * 16777619
		}
		hash = (hash ^ 0xff) * 16777619 // stands in no text
	}
	return 1 << (hash >> 26)
}

// guard returns what all objects pass that the criteria select by a key.
func (c *Criteria) guard(k key) guard {
	if k.lane != kinded {
		return guard{}
	}
	var all guard
	found := false
	for i := range c.kinds {
		p := &c.kinds[i]
		switch {
		case p.kind != k.resource || p.subresource != k.subresource:
		case found:
			all = all.or(p.guard)
		default:
			all, found = p.guard, true
		}
	}
	if c.namespace != "" {
		all.places = bit(c.namespace)
	}
	return all
}

// traits returns those of the object of the request: of the one that it deletes where
// there is no other.
func (s *Subject) traits() *traits {
	found, _ := s.guardedBy.find(func() (traits, error) {
		object := s.request.Object
		if object == nil || object.Object == nil {
			object = s.request.OldObject
		}
		if s.byKindAlone || object == nil || object.Object == nil {
			return traits{unknown: true}, nil
		}
		name, namespace := object.GetName(), object.GetNamespace()
		t := traits{names: bitsFor(name), places: bitsFor(namespace) | bitsFor(s.request.Namespace)}
		if name == "" {
			t.names = bitsFor(object.GetGenerateName())
		}
		if object.GetKind() == "Namespace" { // it lies in itself
			t.places |= bitsFor(name)
		}
		labels, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "labels") // what is no map has none
		if labels, ok := labels.(map[string]any); ok {
			for key, value := range labels {
				if text, ok := value.(string); ok {
					t.labels |= bitsOfLabel(key, text)
				}
			}
		}
		return t, nil
	})
	return &found
}

// ByKindAlone has an index find what may select the request whatever the name, the
// namespace and the labels of its object are: for who wants to know why criteria do not.
func (s *Subject) ByKindAlone() { s.byKindAlone = true }

// FoundLike says whether an index finds the same for both subjects, which differ in
// their object alone.
func (s *Subject) FoundLike(other *Subject) bool { return *s.traits() == *other.traits() }

// pass returns the buckets without the items whose guards do not let the subject pass.
func pass[T any](s *Subject, buckets [][]entry[T]) [][]entry[T] {
	if len(buckets) == 0 {
		return nil
	}
	known, kept := s.traits(), buckets[:0]
	for _, bucket := range buckets {
		count := 0
		for i := range bucket {
			if bucket[i].guard.lets(known) {
				count++
			}
		}
		if count > 0 && count < len(bucket) {
			passing := make([]entry[T], 0, count)
			for i := range bucket {
				if bucket[i].guard.lets(known) {
					passing = append(passing, bucket[i])
				}
			}
			bucket = passing
		}
		if count > 0 {
			kept = append(kept, bucket)
		}
	}
	return kept
}
