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
	"path"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
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
	object, err := one.object()
	if err != nil {
		return nil, err
	}
	method := http.MethodPost
	if one.Request.Operation == admissionv1.Update {
		method = http.MethodPut
		if err := w.continueFrom(ctx, one, object); err != nil {
			return nil, err
		}
	} else if one.Request.Operation != admissionv1.Create {
		return nil, fmt.Errorf("nobody knows how to send %s", one.Request.Operation)
	}
	body, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	url := w.Host + pathOf(one.Request) + "?fieldManager=recorded"
	if dryRun {
		url += "&dryRun=" + metav1.DryRunAll
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	client, err := w.as(one.Request.UserInfo)
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

// as is a client that acts as the user of a request. The administrator impersonates
// them all: a certificate would show in the user's extra.
func (w *world) as(user authenticationv1.UserInfo) (*http.Client, error) {
	config := rest.CopyConfig(w.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user.Username, Groups: user.Groups, UID: user.UID}
	for key, values := range user.Extra {
		if config.Impersonate.Extra == nil {
			config.Impersonate.Extra = map[string][]string{}
		}
		config.Impersonate.Extra[key] = slices.Clone([]string(values))
	}
	return rest.HTTPClientFor(config)
}

// continueFrom makes an update one of what is stored.
func (w *world) continueFrom(ctx context.Context, one *recording, object *unstructured.Unstructured) error {
	resource := one.Request.RequestResource
	stored, err := w.objects.Resource(gvr(*resource)).Namespace(one.Request.Namespace).Get(ctx, one.Request.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.SetResourceVersion(stored.GetResourceVersion())
	return nil
}

// pathOf is where a request was made, before kube-apiserver converted its object.
func pathOf(request *admissionv1.AdmissionRequest) string {
	resource := gvr(*request.RequestResource)
	root := "/apis/" + resource.Group
	if resource.Group == "" {
		root = "/api"
	}
	parts := []string{root, resource.Version}
	if request.Namespace != "" {
		parts = append(parts, "namespaces", request.Namespace)
	}
	parts = append(parts, resource.Resource)
	if request.Operation != admissionv1.Create {
		parts = append(parts, request.Name)
	}
	return path.Join(append(parts, request.RequestSubResource)...)
}

func gvr(resource metav1.GroupVersionResource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Resource}
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
