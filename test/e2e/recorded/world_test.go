// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package recorded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

const (
	// atOnce is how many recordings are stored or repeated at the same time.
	atOnce = 8

	patience = time.Minute
)

// world is a cluster in which all recordings are stored at once: each has a namespace
// and policies of its own.
type world struct {
	*cluster.Cluster
	objects dynamic.Interface
	client  kubernetes.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

func newWorld(t *testing.T, c *cluster.Cluster) *world {
	t.Helper()
	objects, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	discover, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{Cluster: c, objects: objects, client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))}
}

// furnish creates what the policies read and the requests need: definitions of kinds
// before all else, then namespaces, and last what requests change.
func (w *world) furnish(t *testing.T, recordings []*recording) {
	t.Helper()
	rank := func(object unstructured.Unstructured) int {
		return slices.Index([]string{"Namespace", "CustomResourceDefinition"}, object.GetKind())
	}
	var all, changed []unstructured.Unstructured
	for _, one := range recordings {
		all = append(all, one.Cluster...)
		old, err := one.existing()
		if err != nil {
			t.Fatalf("%s: %v", one.Name, err)
		}
		if old != nil {
			changed = append(changed, *old)
		}
	}
	slices.SortStableFunc(all, func(a, b unstructured.Unstructured) int { return rank(b) - rank(a) })
	made := map[string]bool{}
	for _, object := range append(all, changed...) {
		key := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
		if made[key] {
			continue // recordings share definitions and roles
		}
		made[key] = true
		if _, err := w.create(t.Context(), adopted(object)); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if object.GetKind() == "CustomResourceDefinition" {
			w.waitEstablished(t, object.GetName())
		}
	}
}

// adopted is an object in which our API group stands for the policies of Kubernetes,
// as in the roles of their authors.
func adopted(object unstructured.Unstructured) *unstructured.Unstructured {
	if object.GetKind() != "ClusterRole" {
		return object.DeepCopy()
	}
	role := &unstructured.Unstructured{}
	raw, err := object.MarshalJSON()
	if err == nil {
		err = role.UnmarshalJSON([]byte(ours.Replace(string(raw))))
	}
	if err != nil {
		panic(err) // it has been decoded before
	}
	return role
}

func (w *world) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	mapping, err := w.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		w.mapper.Reset()
		mapping, err = w.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	}
	if err != nil {
		return nil, err
	}
	var resource dynamic.ResourceInterface = w.objects.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = w.objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	return resource.Create(ctx, object, metav1.CreateOptions{})
}

func (w *world) waitEstablished(t *testing.T, name string) {
	t.Helper()
	definitions := w.objects.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	eventually(t, name+" is established", func(ctx context.Context) error {
		got, err := definitions.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, definition); err != nil {
			return err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return errors.New("not yet")
	})
}

// letRead gives the servers the right to the params, as an administrator does.
func (w *world) letRead(t *testing.T, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "recorded-params", Labels: map[string]string{"policy.portcullis.dev/aggregate-to-params": "true"}},
		Rules:      rules,
	}
	roles := w.client.RbacV1().ClusterRoles()
	if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the right to read params", func(ctx context.Context) error {
		sum, err := roles.Get(ctx, "portcullis:params", metav1.GetOptions{})
		if err == nil && len(sum.Rules) < len(rules) {
			err = fmt.Errorf("the rules of %s are %v", sum.Name, sum.Rules)
		}
		return err
	})
}

// giveTime lets a busy machine have thrice the time for an answer.
func (w *world) giveTime(t *testing.T) {
	t.Helper()
	patch := []byte(`[{"op":"replace","path":"/webhooks/0/timeoutSeconds","value":30}]`)
	registrations := w.client.AdmissionregistrationV1()
	if _, err := registrations.MutatingWebhookConfigurations().Patch(t.Context(), cluster.Registration, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := registrations.ValidatingWebhookConfigurations().Patch(t.Context(), cluster.Registration, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func split(recordings []*recording, first func(*recording) bool) (these, others []*recording) {
	for _, one := range recordings {
		if first(one) {
			these = append(these, one)
		} else {
			others = append(others, one)
		}
	}
	return these, others
}

// each calls do for all recordings, some at a time.
func each(recordings []*recording, do func(*recording)) {
	var running sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, one := range recordings {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			do(one)
		})
	}
	running.Wait()
}

// eventually waits until look finds no fault.
func eventually(t *testing.T, what string, look func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = look(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v: %v", what, err, last)
	}
}

// refusal is the status of an error of the API.
func refusal(err error) (metav1.Status, bool) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status(), true
	}
	return metav1.Status{}, false
}
