// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// upstream is the plugin of kube-apiserver with a workload.
type upstream struct {
	plugin     *validating.Plugin
	interfaces admission.ObjectInterfaces
	object     *appsv1.Deployment
	compiling  time.Duration // CPU time
	heap       uint64
}

// startUpstream compiles the policies. What it takes to store and list them does
// not count.
func startUpstream(t testing.TB, w workload) *upstream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{corev1.LabelMetadataName: "default"}}}}
	for i := range w.Policies {
		objects = append(objects, w.policy(i))
		for j := range w.Bindings {
			objects = append(objects, w.binding(j, i))
		}
	}
	client := fake.NewSimpleClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.Core().V1().Namespaces().Informer()
	factory.Admissionregistration().V1().ValidatingAdmissionPolicies().Informer()
	factory.Admissionregistration().V1().ValidatingAdmissionPolicyBindings().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	plugin, err := validating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetExternalKubeClientSet(client)
	plugin.SetRESTMapper(meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}}))
	plugin.SetDynamicClient(dynamicfake.NewSimpleDynamicClient(scheme.Scheme))
	plugin.SetDrainedNotification(ctx.Done())
	plugin.SetUnconditionalAuthorizer(authorizer.UnconditionalAuthorizer(authorizerfactory.NewAlwaysAllowAuthorizer()))
	before, begin := heap(), cpu(t)
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) {
		return plugin.WaitForReady(), nil
	}); err != nil {
		t.Fatal(err)
	}
	u := &upstream{plugin: plugin, object: typedDeployment(t), interfaces: admission.NewObjectInterfacesFromScheme(scheme.Scheme)}
	u.compiling = cpu(t) - begin
	u.heap = heap() - before
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	if err := u.validate(t, u.object); err != nil {
		t.Fatalf("upstream denies what all policies allow: %v", err)
	}
	forbidden := u.object.DeepCopy()
	forbidden.Labels["forbidden-0"] = "yes"
	if err := u.validate(t, forbidden); err == nil {
		t.Fatal("upstream allows what the first policy denies")
	}
	return u
}

func (u *upstream) validate(t testing.TB, object *appsv1.Deployment) error {
	attributes := admission.NewAttributesRecord(object, nil, appsv1.SchemeGroupVersion.WithKind("Deployment"), object.Namespace, object.Name,
		appsv1.SchemeGroupVersion.WithResource("deployments"), "", admission.Create, &metav1.CreateOptions{}, false, client())
	return u.plugin.Validate(t.Context(), attributes, u.interfaces)
}

func (u *upstream) judge(t testing.TB) {
	if err := u.validate(t, u.object); err != nil {
		t.Fatal(err)
	}
}
