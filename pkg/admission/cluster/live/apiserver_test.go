// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package live_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// apiServer is as much of an API server as a view needs: discovery, OpenAPI, lists in
// pages, watches, and SubjectAccessReviews. It streams no lists, as old ones do not.
type apiServer struct {
	*httptest.Server

	mu        sync.Mutex
	revision  int
	groups    []apidiscovery.APIGroupDiscovery // the core group first
	documents map[string]string                // OpenAPI, by path
	held      map[string]map[string]*unstructured.Unstructured
	events    map[string][]event
	watches   map[string]int // that are open
	asked     map[string]int // requests by verb and resource
	refuse    map[string]*apierrors.StatusError
	stall     map[string]chan struct{}
	changed   *sync.Cond
	down      bool
	allow     bool // what SubjectAccessReviews answer

	limits []int // of the lists that were asked for
	// expired answers a list that goes on with a token, unless it returns nil.
	expired func(token string) *apierrors.StatusError
}

type event struct {
	revision int
	Type     string                     `json:"type"`
	Object   *unstructured.Unstructured `json:"object"`
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{
		revision:  1,
		documents: map[string]string{},
		held:      map[string]map[string]*unstructured.Unstructured{},
		events:    map[string][]event{},
		watches:   map[string]int{},
		asked:     map[string]int{},
		refuse:    map[string]*apierrors.StatusError{},
		stall:     map[string]chan struct{}{},
	}
	s.changed = sync.NewCond(&s.mu)
	s.serve("", "v1", true, "ConfigMap", "Secret", "Event", "Pod")
	s.serve("", "v1", false, "Namespace")
	s.serve("events.k8s.io", "v1", true, "Event")
	s.serve("apiextensions.k8s.io", "v1", false, "CustomResourceDefinition")
	s.serve("apiregistration.k8s.io", "v1", false, "APIService")
	s.put("namespaces", object("v1", "Namespace", "", "default", map[string]string{"kubernetes.io/metadata.name": "default"}))
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(func() {
		s.change(func() { s.down = true })
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *apiServer) config() *rest.Config {
	return &rest.Config{Host: s.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func (s *apiServer) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.changed.Broadcast()
}

// serve adds kinds to discovery.
func (s *apiServer) serve(group, version string, namespaced bool, kinds ...string) {
	s.change(func() {
		i := slices.IndexFunc(s.groups, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == group })
		if i < 0 {
			i = len(s.groups)
			s.groups = append(s.groups, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}})
		}
		j := slices.IndexFunc(s.groups[i].Versions, func(v apidiscovery.APIVersionDiscovery) bool { return v.Version == version })
		if j < 0 {
			j = len(s.groups[i].Versions)
			s.groups[i].Versions = append(s.groups[i].Versions, apidiscovery.APIVersionDiscovery{Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent})
		}
		for _, kind := range kinds {
			scope := apidiscovery.ScopeCluster
			if namespaced {
				scope = apidiscovery.ScopeNamespace
			}
			s.groups[i].Versions[j].Resources = append(s.groups[i].Versions[j].Resources, apidiscovery.APIResourceDiscovery{
				Resource: strings.ToLower(kind) + "s", SingularResource: strings.ToLower(kind), Scope: scope,
				ResponseKind: &metav1.GroupVersionKind{Group: group, Version: version, Kind: kind},
				Verbs:        []string{"get", "list", "watch"},
				Subresources: []apidiscovery.APISubresourceDiscovery{{
					Subresource: "status", ResponseKind: &metav1.GroupVersionKind{Group: group, Version: version, Kind: kind},
				}},
			})
		}
	})
}

func (s *apiServer) unserve(group string) {
	s.change(func() {
		s.groups = slices.DeleteFunc(s.groups, func(g apidiscovery.APIGroupDiscovery) bool { return g.Name == group })
	})
}

// stale has discovery not know what a group serves.
func (s *apiServer) stale(group string, stale bool) {
	s.change(func() {
		for i := range s.groups {
			if s.groups[i].Name == group {
				s.groups[i].Versions[0].Freshness = apidiscovery.DiscoveryFreshnessCurrent
				if stale {
					s.groups[i].Versions[0].Freshness = apidiscovery.DiscoveryFreshnessStale
				}
			}
		}
	})
}

func object(apiVersion, kind, namespace, name string, labels map[string]string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "test", Operation: "Apply"}})
	return obj
}

// put stores an object under a resource, as group/resource.
func (s *apiServer) put(resource string, obj *unstructured.Unstructured) {
	s.change(func() {
		s.revision++
		obj = obj.DeepCopy()
		obj.SetResourceVersion(strconv.Itoa(s.revision))
		if obj.GetUID() == "" {
			obj.SetUID(types.UID(fmt.Sprint("uid-", s.revision)))
		}
		if s.held[resource] == nil {
			s.held[resource] = map[string]*unstructured.Unstructured{}
		}
		key, change := obj.GetNamespace()+"/"+obj.GetName(), "ADDED"
		if s.held[resource][key] != nil {
			change = "MODIFIED"
		}
		s.held[resource][key] = obj
		s.events[resource] = append(s.events[resource], event{s.revision, change, obj})
	})
}

func (s *apiServer) remove(resource, namespace, name string) {
	s.change(func() {
		s.revision++
		gone := s.held[resource][namespace+"/"+name].DeepCopy()
		gone.SetResourceVersion(strconv.Itoa(s.revision))
		delete(s.held[resource], namespace+"/"+name)
		s.events[resource] = append(s.events[resource], event{s.revision, "DELETED", gone})
	})
}

func (s *apiServer) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

func (s *apiServer) watching(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches[resource]
}

func (s *apiServer) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	switch {
	case down:
		fail(w, apierrors.NewServiceUnavailable("it is down"))
	case r.URL.Path == "/api" || r.URL.Path == "/apis":
		s.discover(w, r.URL.Path)
	case strings.HasPrefix(r.URL.Path, "/openapi/v3"):
		s.openAPI(w, r)
	case r.Method == http.MethodPost:
		s.count1("review")
		s.mu.Lock()
		defer s.mu.Unlock()
		if refused := s.refuse["review"]; refused != nil {
			fail(w, refused)
			return
		}
		reply(w, http.StatusCreated, map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": map[string]any{"allowed": s.allow, "reason": "because"}})
	default:
		s.resource(w, r)
	}
}

func (s *apiServer) count1(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[what]++
}

func (s *apiServer) discover(w http.ResponseWriter, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked["discovery "+path]++
	list := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	if list.Items = s.groups[1:]; path == "/api" {
		list.Items = s.groups[:1]
	}
	w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	_ = json.NewEncoder(w).Encode(list)
}

func (s *apiServer) openAPI(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.URL.Path != "/openapi/v3" {
		s.asked["document"]++
		_, _ = w.Write([]byte(s.documents[strings.TrimPrefix(r.URL.Path, "/openapi/v3/")]))
		return
	}
	paths := map[string]any{}
	for path, document := range s.documents {
		paths[path] = map[string]any{"serverRelativeURL": fmt.Sprintf("/openapi/v3/%s?hash=%d-%x", path, len(document), document[max(0, len(document)-20):])}
	}
	reply(w, http.StatusOK, map[string]any{"paths": paths})
}

// resource answers questions about objects.
func (s *apiServer) resource(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	if parts[0] == "apis" {
		group, parts = parts[1], parts[1:]
	}
	version, parts := parts[1], parts[2:]
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	resource := strings.Trim(group+"/"+parts[0], "/")
	verb := "list"
	switch {
	case len(parts) > 1:
		verb = "get"
	case r.URL.Query().Get("watch") != "":
		verb = "watch"
	}
	s.count1(verb + " " + resource)
	s.mu.Lock()
	refused, stalled := s.refuse[verb+" "+resource], s.stall[verb+" "+resource]
	kind := s.kindOf(schema.GroupVersionResource{Group: group, Version: version, Resource: parts[0]})
	s.mu.Unlock()
	if stalled != nil {
		select {
		case <-stalled:
		case <-r.Context().Done():
			return
		}
	}
	switch {
	case refused != nil:
		fail(w, refused)
	case kind == "":
		http.NotFound(w, r)
	case verb == "watch":
		s.watch(w, r, resource)
	case verb == "get":
		s.mu.Lock()
		defer s.mu.Unlock()
		found := s.held[resource][namespace+"/"+parts[1]]
		if found == nil {
			fail(w, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: parts[0]}, parts[1]))
			return
		}
		reply(w, http.StatusOK, found)
	default:
		s.list(w, r, resource, namespace, metav1.TypeMeta{Kind: kind + "List", APIVersion: schema.GroupVersion{Group: group, Version: version}.String()})
	}
}

func (s *apiServer) kindOf(resource schema.GroupVersionResource) string {
	for _, group := range s.groups {
		for _, version := range group.Versions {
			for _, one := range version.Resources {
				if group.Name == resource.Group && version.Version == resource.Version && one.Resource == resource.Resource {
					return one.ResponseKind.Kind
				}
			}
		}
	}
	return ""
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request, resource, namespace string, of metav1.TypeMeta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	selector, _ := labels.Parse(r.URL.Query().Get("labelSelector"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	s.limits = append(s.limits, limit)
	if token := r.URL.Query().Get("continue"); token != "" && s.expired != nil {
		if expired := s.expired(token); expired != nil {
			fail(w, expired)
			return
		}
	}
	var keys []string
	for key, obj := range s.held[resource] {
		if (namespace == "" || obj.GetNamespace() == namespace) && selector.Matches(labels.Set(obj.GetLabels())) && key > r.URL.Query().Get("continue") {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(a, b) })
	next, left := "", 0
	if limit > 0 && len(keys) > limit {
		left = len(keys) - limit
		keys, next = keys[:limit], keys[limit-1]
	}
	items := []any{}
	for _, key := range keys {
		items = append(items, s.held[resource][key])
	}
	metadata := map[string]any{"resourceVersion": strconv.Itoa(s.revision), "continue": next}
	if left > 0 && selector.Empty() {
		metadata["remainingItemCount"] = left
	}
	reply(w, http.StatusOK, map[string]any{"apiVersion": of.APIVersion, "kind": of.Kind, "items": items, "metadata": metadata})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		fail(w, apierrors.NewInvalid(schema.GroupKind{}, "watch", nil))
		return
	}
	seen, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.WriteHeader(http.StatusOK)
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
		s.change(func() {})
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[resource]++
	defer func() { s.watches[resource]-- }()
	for r.Context().Err() == nil && !s.down && s.refuse["watch "+resource] == nil {
		for _, one := range s.events[resource] {
			if one.revision > seen {
				seen = one.revision
				_ = json.NewEncoder(w).Encode(one)
			}
		}
		flusher.Flush()
		s.changed.Wait()
	}
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	reply(w, int(status.Code), status)
}
