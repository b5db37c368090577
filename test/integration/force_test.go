// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// configMapPolicy returns a policy that denies every ConfigMap of one name, or of
// any when name is empty.
func configMapPolicy(policy, name, message string) *v1alpha1.ValidatingAdmissionPolicy {
	p := newPolicy(policy)
	rule := &p.Spec.MatchConstraints.ResourceRules[0]
	rule.Rule = admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}
	if name != "" {
		rule.ResourceNames = []string{name}
	}
	p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "false", Message: message}}
	return p
}

func configMapReview(t *testing.T, name string) []byte {
	t.Helper()
	return newReview(t, "ConfigMap", "configmaps", name, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"test"}}`, name))
}

// TestInForceSoon measures from the answer to a write until the review door
// denies. Half of the writes decide, since the machine may be busy with other
// tests.
func TestInForceSoon(t *testing.T) {
	const (
		promised = 100 * time.Millisecond
		writes   = 50
	)
	a := newAPI(t)
	delays := make([]time.Duration, 0, writes)
	for i := range writes {
		name := fmt.Sprintf("name-%d", i)
		review := configMapReview(t, name)
		a.createBinding(t, newBinding(name, name))
		if got := verdict(a.review(t, review)); got != "" {
			t.Fatalf("before the write: %s", got)
		}
		a.createPolicy(t, configMapPolicy(name, name, "no"))
		written := time.Now()
		err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
			return verdict(a.review(t, review)) != "", nil
		})
		if err != nil {
			t.Fatalf("policy %s is not in force after %s", name, patience)
		}
		delays = append(delays, time.Since(written))
	}
	slices.Sort(delays)
	median, longest := delays[writes/2], delays[writes-1]
	t.Logf("in force after %s (median), %s (longest)", median, longest)
	if median > promised {
		t.Errorf("in force after %s (median of %d writes), want at most %s", median, writes, promised)
	}
}

var revisions = regexp.MustCompile(`denied request: (first|second) (\d+)`)

// TestVerdictsAreOfCompleteSets reviews while two policies are rewritten in turn:
// whatever the moment, the first is as new as the second or one revision ahead,
// both judge, and no verdict is older than the one before.
func TestVerdictsAreOfCompleteSets(t *testing.T) {
	const (
		last    = 100
		readers = 4
	)
	a := newAPI(t, withoutConditions())
	stored := map[string]*v1alpha1.ValidatingAdmissionPolicy{}
	for _, name := range []string{"first", "second"} {
		stored[name] = a.createPolicy(t, configMapPolicy(name, "", name+" 0"))
		a.createBinding(t, newBinding(name, name))
	}
	review := configMapReview(t, "any")
	waitFor(t, "both policies in force", func() bool { return len(revisionsOf(a.review(t, review))) == 2 })

	var group sync.WaitGroup
	for range readers {
		group.Go(func() { readRevisions(t, a, review, last) })
	}
	for revision := 1; revision <= last; revision++ {
		for _, name := range []string{"first", "second"} {
			stored[name].Spec.Validations[0].Message = fmt.Sprintf("%s %d", name, revision)
			updated, err := a.policies().Update(t.Context(), stored[name], metav1.UpdateOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			stored[name] = updated
		}
	}
	group.Wait()
}

// readRevisions reviews until the last revision of both policies is in force.
func readRevisions(t *testing.T, a *api, review []byte, last int) {
	first, second := 0, 0
	for deadline := time.Now().Add(2 * patience); second < last; {
		response, err := a.tryReview(t.Context(), review)
		if err != nil {
			t.Error(err)
			return
		}
		got := revisionsOf(response)
		if len(got) != 2 {
			t.Errorf("judged by %v, want both policies", got)
			return
		}
		if got["first"] < first || got["second"] < second {
			t.Errorf("revisions %v after %d and %d", got, first, second)
			return
		}
		first, second = got["first"], got["second"]
		if ahead := first - second; ahead < 0 || ahead > 1 {
			t.Errorf("revisions %v were never stored together", got)
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("revision %d is not in force; %v is", last, got)
			return
		}
	}
}

// revisionsOf returns the revision of each policy that denies.
func revisionsOf(response *admissionv1.AdmissionResponse) map[string]int {
	found := map[string]int{}
	if response.Result == nil {
		return found
	}
	var causes []string
	for _, cause := range response.Result.Details.Causes {
		causes = append(causes, cause.Message)
	}
	for _, match := range revisions.FindAllStringSubmatch(strings.Join(causes, "\n"), -1) {
		found[match[1]], _ = strconv.Atoi(match[2]) // digits, as matched
	}
	return found
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), askAgain, patience, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}
