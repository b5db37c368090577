// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
)

// index is all RBAC objects of a cluster, by whom they concern. It is immutable.
type index struct {
	clusterWide *bindings            // the ClusterRoleBindings
	namespaces  map[string]*bindings // the RoleBindings
}

// bindings are those of one scope, by subject.
type bindings struct {
	all []*binding // by name
	of  map[subject][]place
	// faults are of bindings that cannot be read. Whom they bind is unknown, so
	// they concern everybody in the scope.
	faults []error
}

// binding is a ClusterRoleBinding, or a RoleBinding when it has a namespace.
type binding struct {
	namespace, name string
	subjects        []rbacv1.Subject
	roleRef         rbacv1.RoleRef
	role            *role // nil when there is none
	missing         error // why there is none
}

// subject is a user or a group. A service account is a user.
type subject struct {
	group bool
	name  string
}

// place is where a subject stands in bindings: which binding, and which of its
// subjects.
type place struct{ binding, subject int }

// newIndex reads all RBAC objects of source. An object that cannot be read is no
// error here: it is one for those whom it may concern.
func newIndex(ctx context.Context, source Source) (*index, error) {
	roles, err := readRoles(ctx, source)
	if err != nil {
		return nil, err
	}
	x := &index{clusterWide: newBindings(), namespaces: map[string]*bindings{}}
	objects, err := list(ctx, source, "ClusterRoleBinding")
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		x.clusterWide.add(obj, "", roles)
	}
	if objects, err = list(ctx, source, "RoleBinding"); err != nil {
		return nil, err
	}
	for _, obj := range objects {
		namespace := obj.GetNamespace()
		if x.namespaces[namespace] == nil {
			x.namespaces[namespace] = newBindings()
		}
		x.namespaces[namespace].add(obj, namespace, roles)
	}
	return x, nil
}

// list returns all objects of a kind, by namespace and name.
func list(ctx context.Context, source Source, kind string) ([]*unstructured.Unstructured, error) {
	objects, err := source.Objects(ctx, cluster.Selection{
		Kind:     rbacv1.SchemeGroupVersion.WithKind(kind),
		Selector: labels.Everything(),
	})
	if err != nil {
		return nil, fmt.Errorf("%ss cannot be read: %w", kind, err)
	}
	return objects, nil
}

func newBindings() *bindings { return &bindings{of: map[subject][]place{}} }

func (s *bindings) add(obj *unstructured.Unstructured, namespace string, roles *roles) {
	var content struct {
		Subjects []rbacv1.Subject `json:"subjects"`
		RoleRef  rbacv1.RoleRef   `json:"roleRef"`
	}
	if err := decode(obj, &content); err != nil {
		s.faults = append(s.faults, err)
		return
	}
	b := &binding{namespace: namespace, name: obj.GetName(), subjects: content.Subjects, roleRef: content.RoleRef}
	b.role, b.missing = roles.find(b.roleRef, b.namespace)
	for i, one := range b.subjects {
		if bound, ok := b.user(one); ok {
			s.of[bound] = append(s.of[bound], place{binding: len(s.all), subject: i})
		}
	}
	s.all = append(s.all, b)
}

// user returns whom a subject is, as appliesToUser in
// k8s.io/kubernetes/pkg/registry/rbac/validation: the group of its API does not
// count. False says that it is nobody.
func (b *binding) user(s rbacv1.Subject) (subject, bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return subject{name: s.Name}, true
	case rbacv1.GroupKind:
		return subject{name: s.Name, group: true}, true
	case rbacv1.ServiceAccountKind:
		namespace := cmp.Or(s.Namespace, b.namespace)
		return subject{name: serviceaccount.MakeUsername(namespace, s.Name)}, namespace != ""
	default:
		return subject{}, false
	}
}

func (x *index) authorize(attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	scopes := []*bindings{x.clusterWide}
	if namespace := attributes.GetNamespace(); namespace != "" && x.namespaces[namespace] != nil {
		scopes = append(scopes, x.namespaces[namespace])
	}
	q := newQuestion(attributes)
	for _, scope := range scopes {
		for _, at := range scope.places(attributes.GetUser()) {
			if b := scope.all[at.binding]; q.allowedBy(b) {
				return authorizer.DecisionAllow, "RBAC: allowed by " + b.describe(at.subject), nil
			}
		}
		q.faults = append(q.faults, scope.faults...)
	}
	return authorizer.DecisionNoOpinion, q.reason(), q.err()
}

// places returns the bindings of a user, each once and in order, with the first
// of their subjects that is the user.
func (s *bindings) places(caller user.Info) []place {
	found := slices.Clone(s.of[subject{name: caller.GetName()}])
	seen := map[string]bool{}
	for _, group := range caller.GetGroups() {
		if places := s.of[subject{name: group, group: true}]; len(places) > 0 && !seen[group] {
			seen[group] = true
			found = append(found, places...)
		}
	}
	slices.SortFunc(found, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.binding, b.binding), cmp.Compare(a.subject, b.subject))
	})
	return slices.CompactFunc(found, func(a, b place) bool { return a.binding == b.binding })
}

// describe words a binding as kube-apiserver does in its reasons, the name before
// the namespace.
func (b *binding) describe(subject int) string {
	s := b.subjects[subject]
	who := s.Name
	if s.Kind == rbacv1.ServiceAccountKind {
		who += "/" + cmp.Or(s.Namespace, b.namespace)
	}
	kind, name := "ClusterRoleBinding", b.name
	if b.namespace != "" {
		kind, name = "RoleBinding", b.name+"/"+b.namespace
	}
	return fmt.Sprintf("%s %q of %s %q to %s %q", kind, name, b.roleRef.Kind, b.roleRef.Name, s.Kind, who)
}

// find returns the role that a binding in namespace refers to, or why there is
// none, as GetRoleReferenceRules in k8s.io/kubernetes/pkg/registry/rbac/validation:
// the group of its API does not count.
func (r *roles) find(ref rbacv1.RoleRef, namespace string) (*role, error) {
	switch ref.Kind {
	case "Role":
		if found := r.local[roleKey{namespace, ref.Name}]; found != nil && namespace != "" {
			return found, nil
		}
		return nil, apierrors.NewNotFound(rbacv1.Resource("role"), ref.Name)
	case "ClusterRole":
		if found := r.clusterWide[ref.Name]; found != nil {
			return found, nil
		}
		return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrole"), ref.Name)
	default:
		return nil, fmt.Errorf("unsupported role reference kind: %q", ref.Kind)
	}
}
