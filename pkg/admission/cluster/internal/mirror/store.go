// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// store holds objects by namespace and name. A reflector fills it.
type store[T metav1.Object] struct {
	read    func(runtime.Object) (T, error)
	changed func(complete bool) // all has been read, or a part has changed

	mu         sync.RWMutex
	namespaces map[string]*shelf[T]
	count      int
}

var (
	_ cache.ReflectorStore    = (*store[metav1.Object])(nil)
	_ cache.TransformingStore = (*store[metav1.Object])(nil)
)

// shelf holds the objects of one namespace.
type shelf[T metav1.Object] struct {
	byName map[string]item[T]
	// ordered are all items by name; nil when that has to be made anew. What it
	// points to never changes.
	ordered []item[T]
}

// item is an object with its labels, which unstructured objects copy each time.
type item[T metav1.Object] struct {
	object T
	labels labels.Set
}

func (s *store[T]) get(namespace, name string) (T, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if shelf := s.namespaces[namespace]; shelf != nil {
		found, ok := shelf.byName[name]
		return found.object, ok
	}
	var none T
	return none, false
}

// list returns the selected objects by namespace and name. An empty namespace stands
// for all.
func (s *store[T]) list(namespace string, selector labels.Selector) []T {
	var found []T
	for _, items := range s.shelves(namespace) {
		for _, one := range items {
			if selector.Empty() || selector.Matches(one.labels) {
				found = append(found, one.object)
			}
		}
	}
	return found
}

// shelves returns the items of a namespace, or of all in their order.
func (s *store[T]) shelves(namespace string) [][]item[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if namespace != "" {
		if shelf := s.namespaces[namespace]; shelf != nil {
			return [][]item[T]{shelf.inOrder()}
		}
		return nil
	}
	names := make([]string, 0, len(s.namespaces))
	for name := range s.namespaces {
		names = append(names, name)
	}
	slices.Sort(names)
	all := make([][]item[T], 0, len(names))
	for _, name := range names {
		all = append(all, s.namespaces[name].inOrder())
	}
	return all
}

func (s *shelf[T]) inOrder() []item[T] {
	if s.ordered == nil {
		s.ordered = make([]item[T], 0, len(s.byName))
		for _, one := range s.byName {
			s.ordered = append(s.ordered, one)
		}
		slices.SortFunc(s.ordered, func(a, b item[T]) int {
			return strings.Compare(a.object.GetName(), b.object.GetName())
		})
	}
	return s.ordered
}

func (s *store[T]) size() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count
}

// Transformer is what the reflector does to each object as soon as it has read it.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.made(object) }
}

// Add is called by the reflector, as is all that follows.
func (s *store[T]) Add(object any) error {
	made, err := s.made(object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.put(made)
	s.mu.Unlock()
	s.changed(false)
	return nil
}

// Update does the same as Add.
func (s *store[T]) Update(object any) error { return s.Add(object) }

// Delete removes an object.
func (s *store[T]) Delete(object any) error {
	gone, ok := object.(metav1.Object)
	if !ok {
		return fmt.Errorf("%T has no metadata", object)
	}
	s.mu.Lock()
	if shelf := s.namespaces[gone.GetNamespace()]; shelf != nil {
		if _, found := shelf.byName[gone.GetName()]; found {
			delete(shelf.byName, gone.GetName())
			shelf.ordered = nil
			s.count--
		}
		if len(shelf.byName) == 0 {
			delete(s.namespaces, gone.GetNamespace())
		}
	}
	s.mu.Unlock()
	s.changed(false)
	return nil
}

// Replace puts what was read in the place of all that was held.
func (s *store[T]) Replace(objects []any, _ string) error {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		one, err := s.made(object)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	s.mu.Lock()
	s.namespaces, s.count = make(map[string]*shelf[T]), 0
	for _, one := range all {
		s.put(one)
	}
	s.mu.Unlock()
	s.changed(true)
	return nil
}

// Resync does nothing: nobody waits for objects to be told again.
func (s *store[T]) Resync() error { return nil }

// made returns what is held of an object that the reflector gives, which may be that
// already.
func (s *store[T]) made(object any) (T, error) {
	var none T
	given, ok := object.(runtime.Object)
	if !ok {
		if done, ok := object.(T); ok {
			return done, nil
		}
		return none, fmt.Errorf("%T is no object", object)
	}
	return s.read(given)
}

// put needs the lock.
func (s *store[T]) put(object T) {
	held := s.namespaces[object.GetNamespace()]
	if held == nil {
		held = &shelf[T]{byName: map[string]item[T]{}}
		s.namespaces[object.GetNamespace()] = held
	}
	if _, known := held.byName[object.GetName()]; !known {
		s.count++
	}
	held.byName[object.GetName()] = item[T]{object: object, labels: object.GetLabels()}
	held.ordered = nil
}
