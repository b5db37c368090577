// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/portcullis-dev/portcullis/pkg/admission/chain"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
	policyapi "github.com/portcullis-dev/portcullis/pkg/apis/policy"
	"github.com/portcullis-dev/portcullis/pkg/registry/admissionpreview"
)

const (
	// deployments exist in the namespaces a and b.
	deployments = `  cluster:
  - {apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {tier: gold}}}
  - {apiVersion: v1, kind: Namespace, metadata: {name: b}}
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: two, namespace: b, labels: {app: web}}, spec: {replicas: 9}}
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: two, namespace: a, labels: {app: web}}, spec: {replicas: 6, paused: true}}
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: one, namespace: a}, spec: {replicas: 1}}
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: one, namespace: b}, spec: {replicas: 7, paused: false}}
`
	listDeployments = "list apps/v1/deployments /"
)

// onDeployments is a policy on Deployments with its binding.
func onDeployments(name, operations, failurePolicy, actions, expression string) string {
	return fmt.Sprintf(`  - apiVersion: policy.portcullis.dev/v1alpha1
    kind: ValidatingAdmissionPolicyBinding
    metadata: {name: %[1]s-b}
    spec: {policyName: %[1]s, validationActions: [%[2]s]}
  - apiVersion: policy.portcullis.dev/v1alpha1
    kind: ValidatingAdmissionPolicy
    metadata: {name: %[1]s}
    spec:
      failurePolicy: %[3]s
      matchConstraints: {resourceRules: [{apiGroups: [apps, ''], apiVersions: [v1], operations: [%[4]s], resources: [deployments, namespaces]}]}
      validations: [{expression: "%[5]s"}]
`, name, actions, failurePolicy, operations, expression)
}

// summary writes an answer about existing objects in short.
func summary(status policyapi.AdmissionPreviewStatus) string {
	o := status.Objects
	text := fmt.Sprintf("%v: %d = %d allowed, %d denied, %d error", status.Allowed, o.Judged, o.Allowed, o.Denied, o.Error)
	for _, more := range []struct {
		count int32
		what  string
	}{{o.Warned, "warned"}, {o.Audited, "audited"}, {o.Ignored, "ignored"}, {o.Remaining, "remaining"}, {o.Changed, "changed"}} {
		if more.count > 0 {
			text += fmt.Sprintf(", %d %s", more.count, more.what)
		}
	}
	if o.Truncated {
		text += ", truncated"
	}
	for _, failure := range o.Failures {
		text += fmt.Sprintf("\n%s %s/%s", failure.Outcome, failure.Object.Namespace, failure.Object.Name)
	}
	return text
}

func TestExistingObjects(t *testing.T) {
	const few = "object.spec.replicas <= 5"
	tests := []struct {
		name     string
		objects  string
		policies string
		want     string
	}{
		{name: "no policy", objects: "resource: {group: apps, resource: deployments}", want: "true: 4 = 4 allowed, 0 denied, 0 error"},
		{
			name: "denied, by namespace and name", objects: "resource: {group: apps, resource: deployments}", policies: onDeployments("p", "CREATE", "Fail", "Deny", few),
			want: "false: 4 = 1 allowed, 3 denied, 0 error\nDenied a/two\nDenied b/one\nDenied b/two",
		},
		{
			name: "of a namespace", objects: "resource: {group: apps, version: v1, resource: deployments}, namespace: a", policies: onDeployments("p", "CREATE", "Fail", "Deny", few),
			want: "false: 2 = 1 allowed, 1 denied, 0 error\nDenied a/two",
		},
		{
			name: "of a namespace without any", objects: "resource: {group: apps, resource: deployments}, namespace: c", policies: onDeployments("p", "CREATE", "Fail", "Deny", few),
			want: "true: 0 = 0 allowed, 0 denied, 0 error",
		},
		{
			name: "by labels", objects: "resource: {group: apps, resource: deployments}, labelSelector: {matchExpressions: [{key: app, operator: DoesNotExist}]}", policies: onDeployments("p", "CREATE", "Fail", "Deny", few),
			want: "false: 2 = 1 allowed, 1 denied, 0 error\nDenied b/one",
		},
		{
			name: "the first", objects: "resource: {group: apps, resource: deployments}, limit: 2", policies: onDeployments("p", "CREATE", "Fail", "Deny", few),
			want: "false: 2 = 1 allowed, 1 denied, 0 error, truncated\nDenied a/two",
		},
		{
			name: "as many as there are", objects: "resource: {group: apps, resource: deployments}, limit: 4", policies: onDeployments("p", "CREATE", "Fail", "Deny", "true"),
			want: "true: 4 = 4 allowed, 0 denied, 0 error",
		},
		{
			name: "errors", objects: "resource: {group: apps, resource: deployments}", policies: onDeployments("p", "CREATE", "Fail", "Deny", "!object.spec.paused"),
			want: "false: 4 = 1 allowed, 1 denied, 2 error\nError a/one\nDenied a/two\nError b/two",
		},
		{
			name: "errors that are ignored", objects: "resource: {group: apps, resource: deployments}", policies: onDeployments("p", "CREATE", "Ignore", "Deny", "!object.spec.paused"),
			want: "false: 4 = 3 allowed, 1 denied, 0 error, 2 ignored\nDenied a/two\nError a/one\nError b/two",
		},
		{
			name: "warned and audited, after what is denied", objects: "resource: {group: apps, resource: deployments}",
			policies: onDeployments("w", "CREATE", "Fail", "Warn", "object.spec.replicas > 5") + onDeployments("x", "CREATE", "Fail", "Audit", "object.spec.replicas <= 6") + onDeployments("d", "CREATE", "Fail", "Deny", "object.spec.replicas <= 7"),
			want:     "false: 4 = 3 allowed, 1 denied, 0 error, 1 warned, 1 audited\nDenied b/two\nWarned a/one\nAudited b/one",
		},
		{
			name: "another operation", objects: "resource: {group: apps, resource: deployments}", policies: onDeployments("p", "UPDATE, DELETE", "Fail", "Deny", "false"),
			want: "true: 4 = 4 allowed, 0 denied, 0 error",
		},
		{
			name: "as updates that change nothing", objects: "resource: {group: apps, resource: deployments}, operation: UPDATE",
			policies: onDeployments("p", "UPDATE", "Fail", "Deny", "object == oldObject && request.operation == 'UPDATE' && object.metadata.name != 'two'"),
			want:     "false: 4 = 2 allowed, 2 denied, 0 error\nDenied a/two\nDenied b/two",
		},
		{
			name: "as deletions", objects: "resource: {group: apps, resource: deployments}, operation: DELETE",
			policies: onDeployments("p", "DELETE", "Fail", "Deny", "object == null && oldObject.metadata.name != 'two'"),
			want:     "false: 4 = 2 allowed, 2 denied, 0 error\nDenied a/two\nDenied b/two",
		},
		{
			name: "as the caller, in the namespace of each", objects: "resource: {group: apps, resource: deployments}",
			policies: onDeployments("p", "CREATE", "Fail", "Deny", "request.userInfo.username == 'admin' && request.name == object.metadata.name && request.namespace == object.metadata.namespace && namespaceObject.metadata.name == request.namespace && request.resource.resource == 'deployments' && namespaceObject.?metadata.labels.tier.orValue('') != 'gold'"),
			want:     "false: 4 = 2 allowed, 2 denied, 0 error\nDenied a/one\nDenied a/two",
		},
		{
			name: "namespaces, which are in themselves", objects: "resource: {resource: namespaces}, labelSelector: {matchLabels: {tier: gold}}",
			policies: onDeployments("p", "CREATE", "Fail", "Deny", "request.namespace != 'a'"),
			want:     "false: 1 = 0 allowed, 1 denied, 0 error\nDenied /a",
		},
		{name: "of the core group alone", objects: "resource: {resource: events}", want: "true: 0 = 0 allowed, 0 denied, 0 error"},
		{name: "of a group with the same name", objects: "resource: {group: events.k8s.io, resource: events}", want: "true: 0 = 0 allowed, 0 denied, 0 error"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			judging(t, f, &policy.Set{})
			policies := ""
			if test.policies != "" {
				policies = "  policies:\n" + test.policies
			}
			status := f.ask(t, deployments+policies+"  objects: {"+test.objects+"}\n")
			if got := summary(status); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if status.Result != nil || status.Object != nil || len(status.Evaluations) > 0 {
				t.Errorf("the status is also about one request: %+v", status)
			}
		})
	}
}

// TestFailuresAreExplained: what does not pass is listed with the evaluations that
// did not, and with what was looked at.
func TestFailuresAreExplained(t *testing.T) {
	f := newFixture(t)
	judging(t, f, &policy.Set{})
	status := f.ask(t, deployments+"  policies:\n"+onDeployments("p", "CREATE", "Fail", "Deny", "object.spec.replicas <= 5")+
		onDeployments("q", "CREATE", "Fail", "Audit", "object.spec.replicas <= 6")+"  objects: {resource: {group: apps, resource: deployments}, namespace: b, labelSelector: {matchLabels: {app: web}}}\n")
	if len(status.Objects.Failures) != 1 {
		t.Fatalf("got %+v, want one failure", status.Objects.Failures)
	}
	failure := status.Objects.Failures[0]
	if want := (policyapi.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "b", Name: "two"}); failure.Object != want {
		t.Errorf("got %+v, want %+v", failure.Object, want)
	}
	if want := "ValidatingAdmissionPolicy 'p' with binding 'p-b' denied request: failed expression: object.spec.replicas <= 5"; failure.Message != want {
		t.Errorf("got the message %q, want %q", failure.Message, want)
	}
	var got []string
	for _, evaluation := range failure.Evaluations {
		got = append(got, fmt.Sprintf("%s %s %s: %s", evaluation.Outcome, evaluation.Policy.Name, evaluation.Rule, evaluation.Values["object.spec.replicas"].Raw))
	}
	if want := []string{"Denied p validations[0]: 9", "Audited q validations[0]: 9"}; !slices.Equal(got, want) {
		t.Errorf("got the evaluations %q, want %q", got, want)
	}
}

// TestFailuresAreBounded: 20 objects are listed, what is denied before the others.
func TestFailuresAreBounded(t *testing.T) {
	var manifests strings.Builder
	manifests.WriteString("  cluster:\n")
	for i := range 60 {
		fmt.Fprintf(&manifests, "  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: d%02d, namespace: a}, spec: {replicas: %d}}\n", i, i)
	}
	f := newFixture(t)
	judging(t, f, &policy.Set{})
	status := f.ask(t, manifests.String()+"  policies:\n"+onDeployments("p", "CREATE", "Fail", "Deny", "object.spec.replicas < 45")+
		onDeployments("w", "CREATE", "Fail", "Warn", "false")+"  objects: {resource: {group: apps, resource: deployments}}\n")
	objects := status.Objects
	if objects.Denied != 15 || objects.Warned != 45 || len(objects.Failures) != 20 {
		t.Fatalf("got %s", summary(status))
	}
	if first, last := objects.Failures[0], objects.Failures[19]; first.Object.Name != "d45" || last.Object.Name != "d04" || last.Outcome != policyapi.OutcomeWarned {
		t.Errorf("got %s", summary(status))
	}
}

func TestExistingObjectsRefused(t *testing.T) {
	const fine = "resource: {group: apps, resource: deployments}"
	tests := []struct {
		name, spec string
		want       []string
	}{
		{"beside a request", "  request: {object: " + deployment + "}\n  objects: {" + fine + "}", []string{"spec.objects: Forbidden: ask about one request, or about existing objects"}},
		{"no resource", "  objects: {namespace: a}", []string{"spec.objects.resource.resource: Required value: name the resource of the objects, for example deployments, and its group"}},
		{"an unknown resource", "  objects: {resource: {group: example.com, resource: widgets}}", []string{`spec.objects.resource: Invalid value: "widgets.example.com": the cluster has no widgets.example.com`}},
		{"an unknown version", "  objects: {resource: {group: apps, version: v9, resource: deployments}}", []string{`spec.objects.resource: Invalid value: "deployments.v9.apps": the cluster has no deployments.v9.apps`}},
		{"another group", "  objects: {resource: {resource: deployments}}", []string{`spec.objects.resource: Invalid value: "deployments": the cluster has no deployments: is it deployments.apps?`}},
		{"a singular", "  objects: {resource: {group: apps, resource: deployment}}", []string{`spec.objects.resource: Invalid value: "deployment.apps": the cluster has no deployment.apps: is it deployments.apps?`}},
		{"a subresource", "  objects: {resource: {group: apps, resource: deployments/scale}}", []string{`spec.objects.resource: Invalid value: "deployments/scale.apps": the subresource scale has no objects of its own: name deployments`}},
		{"our own group", "  objects: {resource: {group: policy.portcullis.dev, resource: validatingadmissionpolicies}}", []string{`spec.objects.resource: Invalid value: "validatingadmissionpolicies.policy.portcullis.dev": no policy judges validatingadmissionpolicies.policy.portcullis.dev: they are exempt`}},
		{"policies of kube-apiserver", "  objects: {resource: {group: admissionregistration.k8s.io, resource: validatingadmissionpolicies}}", []string{`spec.objects.resource: Invalid value: "validatingadmissionpolicies.admissionregistration.k8s.io": no policy judges validatingadmissionpolicies.admissionregistration.k8s.io: they are exempt`}},
		{"what is not stored", "  objects: {resource: {resource: bindings}}", []string{`spec.objects.resource: Invalid value: "bindings": bindings are answered and not stored: there are no existing ones`}},
		{"a namespace of cluster-scoped objects", "  objects: {resource: {resource: nodes}, namespace: a}", []string{`spec.objects.namespace: Invalid value: "a": nodes are in no namespace: leave it out`}},
		{
			"all that needs no cluster", "  objects: {" + fine + ", namespace: a/b, limit: -1, operation: PATCH, labelSelector: {matchExpressions: [{key: a, operator: Near}]}}",
			[]string{
				"spec.objects.limit: Invalid value: -1: must be between 1 and 5000",
				`spec.objects.operation: Unsupported value: "PATCH": supported values: "CREATE", "UPDATE", "DELETE"`,
				`spec.objects.namespace: Invalid value: "a/b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
				`spec.objects.labelSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`,
			},
		},
		{"too many", "  objects: {" + fine + ", limit: 5001}", []string{"spec.objects.limit: Invalid value: 5001: must be between 1 and 5000"}},
		{"beside a broken cluster", "  cluster: [{kind: Pod, metadata: {name: p}}]\n  objects: {" + fine + ", limit: 5001}", []string{"spec.cluster[0].apiVersion: Required value", "spec.objects.limit: Invalid value: 5001: must be between 1 and 5000"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			got := f.faults(t, test.spec+"\n")
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestExistingObjectsTakeTheRightToList: nobody else hears of them, and nothing is
// judged.
func TestExistingObjectsTakeTheRightToList(t *testing.T) {
	tests := []struct {
		name, objects string
		allowed       []string
		asked         string
		forbidden     string
	}{
		{
			"everywhere", "resource: {resource: secrets}",
			[]string{"get /v1/secrets /", "list /v1/secrets a/"},
			"list /v1/secrets /",
			`secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" at the cluster scope: needed to have the existing objects judged`,
		},
		{
			"of a namespace", "resource: {resource: secrets}, namespace: a",
			[]string{"list /v1/secrets b/"},
			"list /v1/secrets a/",
			`secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "a": needed to have the existing objects judged`,
		},
		{"with the right", "resource: {resource: secrets}, namespace: a", []string{"list /v1/secrets a/"}, "list /v1/secrets a/", ""},
		{"with the right everywhere", "resource: {resource: secrets}", []string{"list /v1/secrets /"}, "list /v1/secrets /", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.rights.allowed = test.allowed
			ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"})
			answer, err := f.create(ctx, t, "  cluster: [{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: a}}]\n  objects: {"+test.objects+"}\n")
			if !slices.Equal(f.rights.asked, []string{test.asked}) {
				t.Errorf("asked %q, want %q", f.rights.asked, test.asked)
			}
			if test.forbidden == "" {
				if err != nil || answer.Status.Objects.Judged != 1 {
					t.Errorf("got %v, %v, want one that is judged", answer, err)
				}
				return
			}
			if !apierrors.IsForbidden(err) || err.Error() != test.forbidden {
				t.Errorf("got %v, want %s", err, test.forbidden)
			}
			if f.request != nil {
				t.Error("an object was judged all the same")
			}
		})
	}
}

// TestExistingObjectsAndParams: what a candidate reads takes its own rights.
func TestExistingObjectsAndParams(t *testing.T) {
	f := newFixture(t)
	judging(t, f, &policy.Set{})
	f.rights.allowed = []string{listDeployments}
	ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "jane"})
	withParams := strings.Replace(onDeployments("p", "CREATE", "Fail", "Deny", "true"), "      failurePolicy", "      paramKind: {apiVersion: v1, kind: Secret}\n      failurePolicy", 1)
	_, err := f.create(ctx, t, "  policies:\n"+withParams+"  objects: {resource: {group: apps, resource: deployments}}\n")
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `cannot get resource "secrets"`) {
		t.Errorf("got %v, want that jane may not read Secrets", err)
	}
	// The Namespace is not the caller's to read.
	answer, err := f.create(ctx, t, deployments+"  policies:\n"+onDeployments("p", "CREATE", "Fail", "Deny", "namespaceObject.metadata.name != ''")+"  objects: {resource: {group: apps, resource: deployments}, limit: 1}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(answer.Status), "false: 1 = 0 allowed, 0 denied, 1 error, truncated\nError a/one"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// lateJudge admits objects until there is no time left, which is while it judges the
// one of that name.
type lateJudge struct{ last string }

func (j lateJudge) Try(ctx context.Context, trial chain.Trial) (verdict.Verdict, error) {
	if trial.Request.Name == j.last {
		<-ctx.Done()
		return verdict.Verdict{}, chain.ErrNoTimeLeft
	}
	return verdict.Allow(), nil
}

// TestExistingObjectsInTime: what is not judged in time is counted, and nobody takes
// it for allowed.
func TestExistingObjectsInTime(t *testing.T) {
	f := newFixture(t)
	f.door, f.decoder = newDoor(t, lateJudge{last: "two"}, admissionpreview.Access{Authorizer: &f.rights})
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	preview, err := f.create(ctx, t, deployments+"  objects: {resource: {group: apps, resource: deployments}}\n")
	if err != nil {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Error("the whole time of the request is gone: there is none for the answer")
	}
	if got, want := summary(preview.Status), "false: 1 = 1 allowed, 0 denied, 0 error, 3 remaining"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSweepsInFlight: those of existing objects take more of the room for previews.
func TestSweepsInFlight(t *testing.T) {
	const fit = 4
	judge := slowJudge{asked: make(chan struct{}), letGo: make(chan struct{})}
	f := newFixture(t)
	f.door, f.decoder = newDoor(t, judge, admissionpreview.Access{Authorizer: &f.rights})
	ask := func() error {
		_, err := f.create(t.Context(), t, deployments+"  objects: {resource: {group: apps, resource: deployments}, limit: 1}\n")
		return err
	}
	var group sync.WaitGroup
	for range fit {
		group.Go(func() {
			if err := ask(); err != nil {
				t.Errorf("a preview that fits: %v", err)
			}
		})
	}
	for range fit {
		<-judge.asked
	}
	if err := ask(); !apierrors.IsTooManyRequests(err) {
		t.Errorf("one too many: got %v, want TooManyRequests", err)
	}
	close(judge.letGo)
	group.Wait()
}
