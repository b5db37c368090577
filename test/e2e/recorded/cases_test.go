// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package recorded

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// recording is what a real kube-apiserver did with policies of its own: that it
// admitted or denied a request, or refused a policy, or what it found in one.
type recording struct {
	Name     string                      `json:"name"`
	Features []string                    `json:"features"`
	Source   string                      `json:"source"`
	Policies []unstructured.Unstructured `json:"policies"`
	// PolicyUser writes the policies: a name, or a user. Most are written by the administrator.
	PolicyUser json.RawMessage               `json:"policyUser"`
	Cluster    []unstructured.Unstructured   `json:"cluster"`
	Request    *admissionv1.AdmissionRequest `json:"request"`
	Want       want                          `json:"want"`
}

type want struct {
	Allowed          *bool               `json:"allowed"`
	Code             int32               `json:"code"`
	Reason           metav1.StatusReason `json:"reason"`
	Message          string              `json:"message"`
	Warnings         []string            `json:"warnings"`
	AuditAnnotations map[string]string   `json:"auditAnnotations"`

	PolicyAccepted bool                                  `json:"policyAccepted"`
	PolicyRejected *rejection                            `json:"policyRejected"`
	TypeChecking   *admissionregistrationv1.TypeChecking `json:"typeChecking"`
}

// rejection is the answer to the write of a policy or binding.
type rejection struct {
	Kind            string `json:"kind"`
	Code            int32  `json:"code"`
	MessageContains string `json:"messageContains"`
}

// read returns the recordings of a file of the directory that CONFORMANCE_DIR names,
// as the Makefile does. Without the directory the test is skipped.
func read(t *testing.T, file string) []*recording {
	t.Helper()
	dir := cmp.Or(os.Getenv("CONFORMANCE_DIR"), filepath.Join("..", "shared", "conformance"))
	if !filepath.IsAbs(dir) {
		root, err := cluster.Root()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(root, dir)
	}
	content, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("there are no recorded cases: %v; set CONFORMANCE_DIR to the directory that has them", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	recordings, err := parse(content)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return recordings
}

// parse is strict: an expectation that is not known here must not pass unseen.
func parse(content []byte) ([]*recording, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var all []*recording
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(bytes.NewReader(asJSON))
		decoder.DisallowUnknownFields()
		one := &recording{}
		if err := decoder.Decode(one); err != nil {
			return nil, fmt.Errorf("case %s: %w", one.Name, err)
		}
		all = append(all, one)
	}
}

// policies are those of a kind.
func (r *recording) policies(kind string) []unstructured.Unstructured {
	var found []unstructured.Unstructured
	for _, policy := range r.Policies {
		if policy.GetKind() == kind {
			found = append(found, policy)
		}
	}
	return found
}

// object is what is sent: that of the recorded request without what a server sets.
func (r *recording) object() (*unstructured.Unstructured, error) {
	return sendable(r.Request.Object.Raw)
}

func sendable(raw []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	for _, field := range strings.Fields("uid creationTimestamp generation resourceVersion managedFields") {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	for _, field := range []string{"clusterIP", "clusterIPs"} { // of a Service; they may be taken
		unstructured.RemoveNestedField(object.Object, "spec", field)
	}
	return object, nil
}
