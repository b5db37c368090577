// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// server is the user of the replicas.
const server = "system:serviceaccount:portcullis-system:portcullis"

// TestFollowedWhileUsed: the objects of a kind are watched while a policy that is
// bound takes its params from it, and neither before nor after.
func TestFollowedWhileUsed(t *testing.T) {
	const namespace, name, group = "followed", "followed.example.com", "followed.example.com"
	log := newAuditLog(t)
	newNamespace(t, namespace, nil)
	define(t, group, "v1")
	letRead(t, "followed-params", limitReader(group))
	if _, err := limits(group, "v1").Namespace(namespace).Create(t.Context(), limit(t, group+"/v1", "first", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	policy := newPolicy(t, name, `{paramKind: {apiVersion: `+group+`/v1, kind: Limit}, matchConstraints: `+onJudged+`,
	  validations: [{expression: "size(object.metadata.name) <= params.spec.max", message: too long}]}`)
	storePolicy(t, policy)
	if got := calls(t, log, group, "watch", "list", "get"); len(got) > 0 {
		t.Errorf("the params of a policy without a binding were read: %s", describe(got))
	}

	bound := time.Now()
	storeBinding(t, newBinding(t, name, `{paramRef: {name: first, parameterNotFoundAction: Deny}}`))
	for _, replica := range replicas(t) {
		eventually(t, "the params to be watched", func(ctx context.Context) error {
			before := len(calls(t, log, group, "get"))
			answer, err := preview(ctx, replica, previewOf(t, judged(namespace, "12345")))
			if err != nil {
				return err
			}
			if answer.Allowed || answer.Result == nil || !strings.Contains(answer.Result.Message, denial(name, "too long")) {
				return fmt.Errorf("got %+v", answer.Result)
			}
			if after := len(calls(t, log, group, "get")); after > before {
				return errors.New("the param was read for the request")
			}
			return nil
		})
	}
	if err := admin.ours.PolicyV1alpha1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// A watch is in the log when it has ended.
	eventually(t, "the watches of all replicas to end", func(context.Context) error {
		if got := calls(t, log, group, "watch"); len(got) < len(shared.Replicas) {
			return fmt.Errorf("%d have ended: %s", len(got), describe(got))
		}
		return nil
	})
	watches := calls(t, log, group, "watch")
	if len(watches) > len(shared.Replicas) {
		t.Errorf("the params were watched %d times by %d replicas: %s", len(watches), len(shared.Replicas), describe(watches))
	}
	for _, watch := range watches {
		if watch.RequestReceivedTimestamp.Time.Before(bound) || watch.ResponseStatus == nil || watch.ResponseStatus.Code != 200 {
			t.Errorf("the binding was stored at %s, and yet: %s", bound, describe(watches))
		}
	}
}

// calls are what the replicas have asked about the objects of a group.
func calls(t *testing.T, log auditLog, group string, verbs ...string) []auditv1.Event {
	t.Helper()
	return log.events(t, server, func(event *auditv1.Event) bool {
		return event.User.Username == server && event.ObjectRef != nil && event.ObjectRef.APIGroup == group && slices.Contains(verbs, event.Verb)
	})
}
