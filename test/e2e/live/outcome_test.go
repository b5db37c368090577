// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// outcomes count what has been compared.
type outcomes struct{ requests, denied, warnings, annotations int }

// outcome is what becomes of a request.
type outcome struct {
	Allowed     bool
	Status      *metav1.Status
	Warnings    []string
	Annotations map[string]string
}

func (o *outcomes) compare(t *testing.T, what string, p *person, one parityRequest) {
	t.Helper()
	status, err := preview(t.Context(), p, one.question(t))
	if err != nil {
		t.Errorf("%s: preview: %v", what, err)
		return
	}
	expected := wrapped(status)
	got, err := enforced(t, p, one)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if err := want(text(t, got), text(t, expected)); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	o.requests++
	if !got.Allowed {
		o.denied++
	}
	o.warnings += len(got.Warnings)
	o.annotations += len(got.Annotations)
}

func text(t *testing.T, of outcome) string {
	t.Helper()
	encoded, err := json.MarshalIndent(of, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// wrapped is what kube-apiserver makes of what a preview says.
func wrapped(status *v1alpha1.AdmissionPreviewStatus) outcome {
	const webhook = "validations.policy.portcullis.dev/"
	o := outcome{Allowed: status.Allowed, Warnings: status.Warnings, Annotations: map[string]string{}}
	for key, value := range status.AuditAnnotations {
		o.Annotations[webhook+strings.ReplaceAll(key, "/", ".")] = value
	}
	if status.Allowed {
		return o
	}
	o.Status = status.Result.DeepCopy()
	o.Status.Details = &metav1.StatusDetails{Causes: o.Status.Details.Causes} // a webhook's answer has no more
	_, inner, _ := strings.Cut(o.Status.Message, " is forbidden: ")
	o.Status.Message = wrapper + inner
	if more := len(o.Status.Details.Causes) - 1; more > 0 {
		o.Status.Message += fmt.Sprintf(" (and %d more: see causes)", more)
	}
	return o
}

// enforced sends a request and returns what has become of it, as its user and the
// audit log tell.
func enforced(t *testing.T, p *person, one parityRequest) (outcome, error) {
	t.Helper()
	id := uuid.NewUUID()
	p, heard, err := tracked(p, id)
	if err != nil {
		return outcome{}, err
	}
	log := newAuditLog(t)
	err = one.send(t.Context(), p)
	o := outcome{Allowed: err == nil, Warnings: heard.texts, Annotations: map[string]string{}}
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		told := refused.Status()
		told.TypeMeta = metav1.TypeMeta{}
		o.Status = &told
	} else if err != nil {
		return outcome{}, err
	}
	events := log.events(t, string(id), func(event *auditv1.Event) bool { return event.AuditID == id })
	if len(events) != 1 {
		return outcome{}, fmt.Errorf("%d events of the request in the audit log", len(events))
	}
	for key, value := range events[0].Annotations {
		if strings.HasPrefix(key, "validations.policy.portcullis.dev/") {
			o.Annotations[key] = value
		}
	}
	return o, nil
}

// tracked is p, with the requests under a number in the audit log and the warnings kept.
func tracked(p *person, id types.UID) (*person, *warnings, error) {
	heard := &warnings{}
	config := rest.CopyConfig(p.config)
	config.WarningHandler = heard
	config.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper {
		return numbered{next, string(id)}
	}))
	made, err := newPerson(config, p.kubeconfig)
	return made, heard, err
}

// numbered gives requests a number for the audit log.
type numbered struct {
	http.RoundTripper
	id string
}

func (n numbered) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set(auditv1.HeaderAuditID, n.id)
	return n.RoundTripper.RoundTrip(request)
}
