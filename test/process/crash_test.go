// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	policyclient "github.com/portcullis-dev/portcullis/pkg/generated/clientset/versioned/typed/policy/v1alpha1"
)

const (
	acknowledgedWrites = 1000
	writers            = 16
)

// TestKillKeepsAcknowledgedWrites kills the server once it has acknowledged a
// thousand policies, while more are being written. Each of them denies one
// ConfigMap, so that it can be told whether it is in force.
func TestKillKeepsAcknowledgedWrites(t *testing.T) {
	dataDir := filepath.Join(t.TempDir(), "data")
	s := launchReady(t, dataDir)
	began := time.Now()
	acknowledged := writeUntilKilled(t, s)
	t.Logf("%d writes acknowledged in %s", len(acknowledged), time.Since(began))
	if len(acknowledged) < acknowledgedWrites {
		t.Fatalf("%d writes acknowledged before the server was gone, want %d", len(acknowledged), acknowledgedWrites)
	}

	began = time.Now()
	restarted := launchReady(t, dataDir)
	t.Logf("ready again after %s", time.Since(began))
	stored := listUIDs(t, restarted.client(t).PolicyV1alpha1().ValidatingAdmissionPolicies())
	lost := maps.Clone(acknowledged)
	maps.DeleteFunc(lost, func(name, uid string) bool { return stored[name] == uid })
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged policies are lost: %v", len(lost), len(acknowledged), lost)
	}
	if most := len(acknowledged) + writers; len(stored) > most {
		t.Errorf("%d policies are stored, want at most %d: those acknowledged, and one of each writer", len(stored), most)
	}
	began = time.Now()
	wantInForce(t, restarted, slices.Sorted(maps.Keys(acknowledged)))
	t.Logf("all found in force within %s", time.Since(began))
	restarted.terminate(t)
}

// newDenial returns a policy that denies the ConfigMap of its own name, and the
// binding that puts it in force.
func newDenial(name string) (*v1alpha1.ValidatingAdmissionPolicy, *v1alpha1.ValidatingAdmissionPolicyBinding) {
	policy := newPolicy(name)
	rule := &policy.Spec.MatchConstraints.ResourceRules[0]
	rule.ResourceNames = []string{name}
	rule.Rule = admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "object.metadata.name != '" + name + "'"}}
	binding := &v1alpha1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	return policy, binding
}

// wantInForce expects that the server, which is ready, denies the ConfigMap of each
// name for the policy of that name alone.
func wantInForce(t *testing.T, s *server, names []string) {
	t.Helper()
	config := s.config(t)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.SetLimit(writers)
	for _, name := range names {
		group.Go(func() error {
			got, err := review(t.Context(), client, config.Host+reviewPath, name)
			want := fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: failed expression: object.metadata.name != '%s'", name, name, name)
			if err == nil && got != want {
				err = fmt.Errorf("policy %s: got verdict %q, want %q", name, got, want)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Errorf("not in force after the restart: %v", err)
	}
}

// review asks whether a ConfigMap may be created and returns why it is denied, or
// nothing when it is allowed.
func review(ctx context.Context, client *http.Client, url, name string) (denial string, err error) {
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1",%s,"name":%q,"namespace":"default",`+
		`"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"}}}}`, reviewed, name, name)
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	answer, err := client.Do(post)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var out admissionv1.AdmissionReview
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		return "", err
	}
	switch {
	case answer.StatusCode != http.StatusOK || out.Response == nil:
		return "", fmt.Errorf("the review door answers %d", answer.StatusCode)
	case out.Response.Allowed:
		return "", nil
	case out.Response.Result == nil:
		return "", errors.New("denied without a result")
	}
	return out.Response.Result.Message, nil
}

// writeUntilKilled returns the uid of each policy whose creation was acknowledged, by name.
func writeUntilKilled(t *testing.T, s *server) map[string]string {
	t.Helper()
	client := s.client(t).PolicyV1alpha1()
	enough := make(chan struct{})
	var (
		next         atomic.Int64
		mu           sync.Mutex
		acknowledged = map[string]string{}
		group        sync.WaitGroup
	)
	for range writers {
		group.Go(func() {
			for {
				name := fmt.Sprintf("policy-%05d", next.Add(1))
				policy, binding := newDenial(name)
				if _, err := client.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
					return // the server is gone
				}
				created, err := client.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
				if err != nil {
					return
				}
				mu.Lock()
				acknowledged[name] = string(created.UID)
				if len(acknowledged) == acknowledgedWrites {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
	case <-s.exited:
	case <-time.After(patience):
		t.Errorf("no %d writes within %s", acknowledgedWrites, patience)
	}
	s.kill(t)
	group.Wait()
	return acknowledged
}

func listUIDs(t *testing.T, policies policyclient.ValidatingAdmissionPolicyInterface) map[string]string {
	t.Helper()
	uids := map[string]string{}
	options := metav1.ListOptions{Limit: 300}
	for {
		page, err := policies.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			uids[page.Items[i].Name] = string(page.Items[i].UID)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return uids
		}
	}
}
