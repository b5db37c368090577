// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"--kubeconfig", "k"}, {"--kubeconfig", "k", "--questions", "q", "--bootstrap"}, {"--bootstrap"}, {"--kubeconfig", "k", "--bootstrap", "more"}} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "give --kubeconfig") {
			t.Errorf("%q: got %v, want a word on the usage", args, err)
		}
	}
}

// TestAnswers asks a server that allows what users named by a path may get, for
// one of two reasons. What it writes is a file of questions again.
func TestAnswers(t *testing.T) {
	clients := fake.NewClientset()
	asked := 0
	clients.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		if spec := review.Spec; spec.NonResourceAttributes != nil {
			asked++
			review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: fmt.Sprint(spec.User, asked%2)}
		} else if spec.ResourceAttributes.Subresource != "log" || spec.ResourceAttributes.Namespace != "team" || spec.Groups[0] != "g" {
			t.Errorf("got %+v, want all that is asked", spec)
		}
		return true, review, nil
	})
	s := &server{typed: clients, version: "v1"}
	file := filepath.Join(t.TempDir(), "questions.yaml")
	const want = `# Answers of kube-apiserver v1 to SubjectAccessReviews, as hack/rbacanswers has recorded them.
- {"user":"u","verb":"get","path":"/a","allowed":true,"reasons":["u0","u1"]}
- {"user":"u","groups":["g"],"verb":"get","resource":"pods","subresource":"log","namespace":"team","allowed":false,"reasons":[""]}
`
	questions := "- {user: u, verb: get, path: /a}\n- {user: u, groups: [g], verb: get, resource: pods, subresource: log, namespace: team}\n"
	for range 2 {
		if err := os.WriteFile(file, []byte(questions), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := s.writeAnswers(t.Context(), &out, options{questions: file, settle: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		if questions = out.String(); questions != want {
			t.Errorf("got\n%s\nwant\n%s", questions, want)
		}
	}
}

func TestBootstrap(t *testing.T) {
	kinds := map[schema.GroupVersionResource]string{}
	for resource, kind := range map[string]string{"clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding", "roles": "Role", "rolebindings": "RoleBinding"} {
		kinds[rbacv1.SchemeGroupVersion.WithResource(resource)] = kind + "List"
	}
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "1", CreationTimestamp: metav1.Now(), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
	}
	s := &server{dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(clientscheme.Scheme, kinds, role), version: "v1"}
	var out strings.Builder
	if err := s.writeBootstrap(t.Context(), &out, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(out.String(), "\n"); len(lines) != 4 || lines[2] != `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"},"rules":null}` {
		t.Errorf("got\n%s\nwant two comments and the role without what differs between clusters", out.String())
	}
}
