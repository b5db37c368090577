// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package doors

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/testutil"
)

// testFairness: the servers share themselves out as the FlowSchemas of the cluster say,
// which are looked at while they run, and kube-apiserver does not wait behind anybody.
func testFairness(t *testing.T, h *house) {
	const schema, user, level = "doors-fairness", "fiona", "workload-low"
	_, err := h.client.FlowcontrolV1().FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: schema},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			MatchingPrecedence:         500,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h.grant(t, "portcullis:viewer", userSubject(user))
	config, err := h.ControlPlane.Config(user)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a server that knows the FlowSchema", func(ctx context.Context) error {
		if err := get(ctx, client, h.Host+groupPath+"/validatingadmissionpolicies", io.Discard); err != nil {
			return err
		}
		if seen := h.dispatched(t); seen[flow{schema, level}] == 0 {
			return fmt.Errorf("the servers have dispatched %v", seen)
		}
		return nil
	})
	h.testExempt(t)
}

// testExempt has kube-apiserver ask about many requests.
func (h *house) testExempt(t *testing.T) {
	const requests = 50
	before := h.dispatched(t)
	for i := range requests {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("fairness-%d", i)}}
		dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		if _, err := h.client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), object, dryRun); err != nil {
			t.Fatal(err)
		}
	}
	exempt, queued := 0, 0
	for flow, count := range h.dispatched(t) {
		if flow.level == flowcontrolv1.PriorityLevelConfigurationNameExempt {
			exempt += count - before[flow]
		} else {
			queued += count - before[flow]
		}
	}
	if exempt < requests || queued >= requests {
		t.Errorf("of %d reviews and what else came, %d were exempt and %d could have waited", requests, exempt, queued)
	}
}

// flow is how a request was classified.
type flow struct{ schema, level string }

// dispatched are the requests that the servers have taken on, together.
func (h *house) dispatched(t *testing.T) map[flow]int {
	t.Helper()
	client := h.clientOf(t, h.certificate(t, "admin", "system:masters"))
	total := map[flow]int{}
	for _, replica := range h.Replicas {
		var text bytes.Buffer
		if err := get(t.Context(), client, "https://"+replica.Address+"/metrics", &text); err != nil {
			t.Fatal(err)
		}
		metrics := testutil.NewMetrics()
		if err := testutil.ParseMetrics(text.String(), &metrics); err != nil {
			t.Fatal(err)
		}
		for _, sample := range metrics["apiserver_flowcontrol_dispatched_requests_total"] {
			total[flow{string(sample.Metric["flow_schema"]), string(sample.Metric["priority_level"])}] += int(sample.Value)
		}
	}
	return total
}

func get(ctx context.Context, client *http.Client, url string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	_, err = io.Copy(to, response.Body)
	return err
}
