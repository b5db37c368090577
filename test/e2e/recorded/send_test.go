// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package recorded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// answer is what kube-apiserver tells the user, and the number under which it wrote
// the request into its audit log.
type answer struct {
	code     int
	status   metav1.Status // of a request that was not done
	warnings []string
	auditID  string
}

func (a *answer) allowed() bool { return a.code >= 200 && a.code <= 299 }

// send makes the recorded request for real, as the recorded user.
func (w *world) send(ctx context.Context, one *recording, dryRun bool) (*answer, error) {
	call, err := w.callOf(ctx, one)
	if err != nil {
		return nil, err
	}
	if dryRun {
		call.query.Set("dryRun", metav1.DryRunAll)
	}
	request, err := http.NewRequestWithContext(ctx, call.method, w.Host+pathOf(one.Request)+"?"+call.query.Encode(), bytes.NewReader(call.body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	client, err := rest.HTTPClientFor(w.as(one.Request.UserInfo))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return readAnswer(response)
}

// call is a request without its path.
type call struct {
	method string
	query  url.Values
	body   []byte
}

func (w *world) callOf(ctx context.Context, one *recording) (*call, error) {
	made := &call{query: url.Values{"fieldManager": {"recorded"}}}
	switch one.Request.Operation {
	case admissionv1.Delete:
		return &call{method: http.MethodDelete, query: url.Values{}}, nil
	case admissionv1.Connect:
		return connection(one)
	case admissionv1.Update:
		made.method = http.MethodPut
	case admissionv1.Create:
		made.method = http.MethodPost
	}
	object, err := one.object()
	if err != nil {
		return nil, err
	}
	if one.Request.Operation == admissionv1.Update {
		stored, err := w.at(one).Get(ctx, one.Request.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		object.SetResourceVersion(stored.GetResourceVersion())
	}
	made.body, err = object.MarshalJSON()
	return made, err
}

// connection is one to a Pod: its options are in the query.
func connection(one *recording) (*call, error) {
	options := &corev1.PodExecOptions{}
	if err := json.Unmarshal(one.Request.Object.Raw, options); err != nil {
		return nil, err
	}
	query, err := scheme.ParameterCodec.EncodeParameters(options, corev1.SchemeGroupVersion)
	return &call{method: http.MethodPost, query: query}, err
}

// as is the access of one who acts as a user. The administrator impersonates them all:
// a certificate would show in the user's extra.
func (w *world) as(user authenticationv1.UserInfo) *rest.Config {
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user.Username, Groups: user.Groups, UID: user.UID, Extra: map[string][]string{}}
	for key, values := range user.Extra {
		config.Impersonate.Extra[key] = slices.Clone([]string(values))
	}
	return config
}

// at is where the object of a request is stored.
func (w *world) at(one *recording) dynamic.ResourceInterface {
	resource := w.objects.Resource(requested(one.Request))
	if one.Request.Namespace == "" || one.Request.RequestResource.Resource == "namespaces" {
		return resource
	}
	return resource.Namespace(one.Request.Namespace)
}

// requested is the resource that a user asked for, before kube-apiserver converted the object.
func requested(request *admissionv1.AdmissionRequest) schema.GroupVersionResource {
	resource := request.RequestResource
	return schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Resource}
}

func pathOf(request *admissionv1.AdmissionRequest) string {
	resource := requested(request)
	root := "/apis/" + resource.Group
	if resource.Group == "" {
		root = "/api"
	}
	parts := []string{root, resource.Version}
	if request.Namespace != "" && resource.Resource != "namespaces" {
		parts = append(parts, "namespaces", request.Namespace)
	}
	parts = append(parts, resource.Resource)
	if request.Operation != admissionv1.Create || request.RequestSubResource != "" {
		parts = append(parts, request.Name, request.RequestSubResource)
	}
	return path.Join(parts...)
}

func readAnswer(response *http.Response) (*answer, error) {
	got := &answer{code: response.StatusCode, auditID: response.Header.Get("Audit-Id")}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if !got.allowed() {
		if err := json.Unmarshal(body, &got.status); err != nil {
			return nil, fmt.Errorf("%d: %w: %s", got.code, err, body)
		}
	}
	warnings, errs := utilnet.ParseWarningHeaders(response.Header["Warning"])
	for _, warning := range warnings {
		got.warnings = append(got.warnings, warning.Text)
	}
	return got, errors.Join(errs...)
}

// existing is what must be there before the request is made, where it changes an
// object. That of which it asks for a part is in the recorded cluster.
func (r *recording) existing() (*unstructured.Unstructured, error) {
	if r.Request == nil {
		return nil, nil //nolint:nilnil // nothing is requested
	}
	old := r.Request.OldObject.Raw
	if len(old) == 0 || string(old) == "null" || r.Request.RequestSubResource != "" {
		return nil, nil //nolint:nilnil // most requests are about nothing that exists
	}
	return sendable(old)
}
