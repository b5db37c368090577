// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package differential_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
)

// clusterObjects is the cluster that both sides see. Every object is complete, so
// that neither side adds anything to it.
const clusterObjects = `
apiVersion: v1
kind: Namespace
metadata:
  name: prod
  labels: {env: prod, team: a, kubernetes.io/metadata.name: prod}
  annotations: {note: "über \"x\""}
  ownerReferences: [{apiVersion: v1, kind: Node, name: owner, uid: u}]
spec: {finalizers: [kubernetes]}
status: {phase: Active}
---
apiVersion: v1
kind: Namespace
metadata: {name: test, labels: {env: test, kubernetes.io/metadata.name: test}, finalizers: [a/b], generation: 3}
spec: {finalizers: [kubernetes]}
status: {phase: Terminating, conditions: [{type: X, status: "True", reason: R, message: M, lastTransitionTime: "2026-01-02T03:04:05Z"}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: bare, labels: {kubernetes.io/metadata.name: bare}}
spec: {finalizers: [kubernetes]}
status: {phase: Active}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: prod, labels: {env: prod, tier: "1"}}
data: {limit: "5", name: nginx, re: "^ng.*", big: "3", max: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: more, namespace: prod, labels: {env: prod}}
data: {limit: "many", name: ""}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: test, labels: {env: test}, annotations: {a: b}}
data: {limit: "7"}
binaryData: {bytes: AAEC}
immutable: true
---
apiVersion: v1
kind: ConfigMap
metadata: {name: empty, namespace: test}
---
apiVersion: v1
kind: Secret
metadata: {name: limits, namespace: prod, labels: {env: prod}}
type: Opaque
data: {limit: NQ==}
---
apiVersion: example.com/v1
kind: Setting
metadata: {name: limits, namespace: prod, labels: {env: prod}}
spec: {max: 3, names: [nginx, redis], limit: 5, nested: {a: {b: 1}}, flag: true}
---
apiVersion: example.com/v1
kind: Setting
metadata: {name: wide, namespace: prod, labels: {env: prod, tier: "2"}}
spec: {max: 100, names: [], limit: "x", flag: false}
---
apiVersion: example.com/v2
kind: Setting
metadata: {name: limits, namespace: test, labels: {env: test}}
spec: {max: -1, limit: 2.5, names: [1, 2], flag: null}
---
apiVersion: example.com/v1
kind: Realm
metadata: {name: limits, labels: {env: prod}}
spec: {max: 4, names: [a, b], limit: 1}
---
apiVersion: example.com/v1
kind: Realm
metadata: {name: other, labels: {env: prod, tier: "1"}}
spec: {max: 0, limit: 1000000}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  conversion: {strategy: None}
  versions:
  - {name: v2, served: true, storage: true, subresources: {status: {}, scale: {}}}
  - {name: v1, served: true, storage: false, subresources: {status: {}}}
  - {name: v1beta1, served: false, storage: false, subresources: {status: {}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: settings.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: settings, singular: setting, kind: Setting}
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v2, served: true, storage: false}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: realms.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: realms, singular: realm, kind: Realm}
  versions:
  - {name: v1, served: true, storage: true}
  - {name: v2, served: true, storage: false}
`

// world is the cluster for both sides: the view of ours, and listers, informers
// and a mapper for upstream.
type world struct {
	cluster.View
	namespaces map[string]*corev1.Namespace
	params     map[schema.GroupVersionKind]*params
	registry   runtime.EquivalentResourceRegistry
	client     kubernetes.Interface // has nothing, as the listers have all
}

// Authorizer lies over the RBAC evaluator of the view: what it answers is not
// what is compared here.
func (w *world) Authorizer() authorizer.UnconditionalAuthorizer { return oracle{} }

func newWorld(t testing.TB) *world {
	t.Helper()
	objects, err := manifest.Decode([]byte(clusterObjects))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		namespaces: map[string]*corev1.Namespace{}, params: map[schema.GroupVersionKind]*params{},
		registry: newRegistry(), client: fake.NewClientset(),
	}
	for kind, scope := range paramKinds() {
		w.params[kind] = &params{kind: kind, scope: scope}
	}
	for _, object := range objects {
		object.SetUID(types.UID("uid-" + object.GetKind() + "-" + object.GetNamespace() + "-" + object.GetName()))
		object.SetCreationTimestamp(metav1.Unix(1_700_000_000, 0))
		if err := w.add(object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range w.params {
		slices.SortFunc(p.objects, func(a, b named) int {
			return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
		})
	}
	if w.View, err = offline.New(objects); err != nil {
		t.Fatal(err)
	}
	return w
}

// add keeps an object as upstream's informers would: built-in kinds typed and
// without their kind, others in every version that is watched.
func (w *world) add(object *unstructured.Unstructured) error {
	if object.GetKind() == "Namespace" {
		namespace := &corev1.Namespace{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, namespace); err != nil {
			return err
		}
		namespace.TypeMeta = metav1.TypeMeta{}
		w.namespaces[namespace.Name] = namespace
	}
	for kind, p := range w.params {
		if kind.GroupKind() != object.GroupVersionKind().GroupKind() {
			continue
		}
		typed, err := clientgoscheme.Scheme.New(kind)
		if err != nil {
			other := object.DeepCopy()
			other.SetGroupVersionKind(kind)
			p.objects = append(p.objects, named{object.GetNamespace(), object.GetName(), object.GetLabels(), other})
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return err
		}
		typed.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		p.objects = append(p.objects, named{object.GetNamespace(), object.GetName(), object.GetLabels(), typed})
	}
	return nil
}

// paramKinds are the kinds that upstream watches. Deployments and the like are
// not among them: an informer gives them the zero values of their Go types, and
// in a cluster they have defaults, which the view does not add.
func paramKinds() map[schema.GroupVersionKind]meta.RESTScope {
	custom := func(version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "example.com", Version: version, Kind: kind}
	}
	return map[schema.GroupVersionKind]meta.RESTScope{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"): meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Secret"):    meta.RESTScopeNamespace,
		custom("v1", "Setting"):                         meta.RESTScopeNamespace,
		custom("v2", "Setting"):                         meta.RESTScopeNamespace,
		custom("v1", "Realm"):                           meta.RESTScopeRoot,
		custom("v2", "Realm"):                           meta.RESTScopeRoot,
	}
}

// named is an object as a lister finds it.
type named struct {
	namespace, name string
	labels          map[string]string
	object          runtime.Object
}

// params is an informer whose lister has an order: that of upstream's is random,
// so what is judged with several params would differ from run to run.
type params struct {
	kind      schema.GroupVersionKind
	scope     meta.RESTScope
	objects   []named // in order
	namespace string  // empty: all
}

var (
	_ informers.GenericInformer    = (*params)(nil)
	_ cache.GenericLister          = (*params)(nil)
	_ cache.SharedIndexInformer    = synced{}
	_ cache.GenericNamespaceLister = (*params)(nil)
)

func (p *params) Informer() cache.SharedIndexInformer { return synced{} }

func (p *params) Lister() cache.GenericLister { return p }

func (p *params) ByNamespace(namespace string) cache.GenericNamespaceLister {
	narrow := *p
	narrow.namespace = namespace
	return &narrow
}

func (p *params) List(selector labels.Selector) ([]runtime.Object, error) {
	var found []runtime.Object
	for _, o := range p.objects {
		if (p.namespace == "" || p.namespace == o.namespace) && selector.Matches(labels.Set(o.labels)) {
			found = append(found, o.object)
		}
	}
	return found, nil
}

func (p *params) Get(name string) (runtime.Object, error) {
	for _, o := range p.objects {
		if p.namespace == o.namespace && name == o.name {
			return o.object, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: p.kind.Group, Resource: p.kind.Kind}, name)
}

// synced is an informer that has seen all.
type synced struct{ cache.SharedIndexInformer }

func (synced) HasSynced() bool { return true }

func (w *world) namespace(name string) (*corev1.Namespace, error) {
	if namespace, ok := w.namespaces[name]; ok {
		return namespace, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}

// TestWorld makes sure that both sides see the same cluster.
func TestWorld(t *testing.T) {
	w := newWorld(t)
	for name, want := range w.namespaces {
		got, err := w.View.Namespace(context.Background(), name)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "Namespace "+name, want, got)
	}
	for kind, p := range w.params {
		got, err := w.View.Objects(context.Background(), cluster.Selection{Kind: kind, Selector: labels.Everything()})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, object := range got {
			names = append(names, object.GetNamespace()+"/"+object.GetName())
		}
		var want []string
		for _, o := range p.objects {
			want = append(want, o.namespace+"/"+o.name)
		}
		equal(t, kind.String(), want, names)
	}
}
