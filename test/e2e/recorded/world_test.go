// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package recorded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"

	patience = time.Minute
)

var (
	ourVersion = schema.GroupVersion{Group: "policy.portcullis.dev", Version: "v1alpha1"}
	policies   = ourVersion.WithResource("validatingadmissionpolicies")
	resourceOf = map[string]schema.GroupVersionResource{
		policyKind: policies, bindingKind: ourVersion.WithResource("validatingadmissionpolicybindings"),
	}
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
// before all else, then namespaces.
func (w *world) furnish(t *testing.T, recordings []*recording) {
	t.Helper()
	rank := func(object unstructured.Unstructured) int {
		return slices.Index([]string{"Namespace", "CustomResourceDefinition"}, object.GetKind())
	}
	var all []unstructured.Unstructured
	for _, one := range recordings {
		all = append(all, one.Cluster...)
	}
	slices.SortStableFunc(all, func(a, b unstructured.Unstructured) int { return rank(b) - rank(a) })
	made := map[string]bool{}
	for _, object := range all {
		key := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
		if made[key] {
			continue // recordings share definitions and roles
		}
		made[key] = true
		if _, err := w.create(t.Context(), adopted(object)); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		switch object.GetKind() {
		case "CustomResourceDefinition":
			w.waitEstablished(t, object.GetName())
		case "Namespace": // Pods need it, and no controller makes it
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			if _, err := w.client.CoreV1().ServiceAccounts(object.GetName()).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, one := range recordings {
		if one.Request == nil {
			continue
		}
		old, err := one.existing()
		if err == nil && old != nil {
			_, err = w.create(t.Context(), old)
		}
		if err != nil {
			t.Errorf("%s: the object that is changed: %v", one.Name, err)
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

// legislate stores the policies, with one line changed, and waits until they are in force.
func (w *world) legislate(t *testing.T, recordings []*recording) {
	t.Helper()
	for _, kind := range []string{bindingKind, policyKind} { // then a policy that is ready is bound
		for _, one := range recordings {
			for _, policy := range one.policies(kind) {
				if _, err := store(t.Context(), w.objects, policy); err != nil {
					t.Errorf("%s: %v", one.Name, err)
				}
			}
		}
	}
	stored := w.objects.Resource(policies)
	eventually(t, "all policies are in force", func(ctx context.Context) error {
		list, err := stored.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := ready(&list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// store writes a policy or binding of Kubernetes as one of ours.
func store(ctx context.Context, client dynamic.Interface, policy unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ours := policy.DeepCopy()
	ours.SetAPIVersion(ourVersion.String())
	return client.Resource(resourceOf[policy.GetKind()]).Create(ctx, ours, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
}

// author is the client of one who writes the policies of a recording.
func (w *world) author(one *recording) (dynamic.Interface, error) {
	if len(one.PolicyUser) == 0 {
		return w.objects, nil
	}
	var user authenticationv1.UserInfo
	if err := json.Unmarshal(one.PolicyUser, &user); err != nil {
		if err := json.Unmarshal(one.PolicyUser, &user.Username); err != nil {
			return nil, err
		}
	}
	return dynamic.NewForConfig(w.as(user))
}

func ready(policy *unstructured.Unstructured) error {
	status := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(policy.Object, &status); err != nil {
		return err
	}
	condition := meta.FindStatusCondition(status.Status.Conditions, "Ready")
	if condition == nil || condition.Status != metav1.ConditionTrue || condition.ObservedGeneration != policy.GetGeneration() {
		return fmt.Errorf("%s: %+v", policy.GetName(), condition)
	}
	return nil
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
