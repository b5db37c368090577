// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"strings"

	"github.com/portcullis-dev/portcullis/pkg/apiserver"
)

const (
	reviewPath = apiserver.ReviewPath

	objects = `
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: v1
kind: Namespace
metadata: {name: test, labels: {environment: test}}
`

	denyAll  = "  validations: [{expression: 'false', message: refused}]\n"
	p        = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: "
	denied   = "denied (422)"
	takesAll = "  matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*']}], excludeResourceRules: [{apiGroups: [marks.example.com], apiVersions: ['*'], operations: ['*'], resources: ['*']}]}\n"
)

func rows() []row {
	var all []row
	for _, part := range [][]row{expressionRows(), bindingRows(), matchRows(), storedRows(), waysAroundRows(), bodyRows(), callerRows()} {
		all = append(all, part...)
	}
	return all
}

// expressionRows are about expressions that cannot be evaluated.
func expressionRows() []row {
	const (
		absent = "  validations: [{expression: object.data.absent == 'x'}]\n"
		// Each step of the comprehensions costs; together they exceed the limit.
		costly = "  validations: [{expression: '[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))'}]\n"
	)
	return []row{
		{fault: "a validation reads a field that is not there, failurePolicy Fail", spec: absent, matched: denied, sees: p + "expression 'object.data.absent == 'x'' resulted in error: no such key: absent"},
		{fault: "the same, failurePolicy Ignore", spec: "  failurePolicy: Ignore\n" + absent},
		{fault: "the same, failurePolicy Fail, action Warn", spec: absent, binding: "  validationActions: [Warn]\n", matched: "allowed, warned", sees: "no such key: absent"},
		{fault: "the same, failurePolicy Fail, action Audit", spec: absent, binding: "  validationActions: [Audit]\n", matched: "allowed, audited", sees: "no such key: absent"},
		{
			fault: "the same, failurePolicy Ignore, while another policy denies", spec: "  failurePolicy: Ignore\n" + absent,
			more:    []string{policyManifest("q", configMaps+denyAll), bindingManifest("q", "")},
			matched: denied, sees: "ValidatingAdmissionPolicy 'q' with binding 'q' denied request: refused",
		},
		{fault: "the CEL cost limit is exceeded, failurePolicy Fail", spec: costly, matched: denied, sees: "operation cancelled: actual cost limit exceeded"},
		{fault: "the CEL cost limit is exceeded, failurePolicy Ignore", spec: "  failurePolicy: Ignore\n" + costly},
		{fault: "a match condition cannot be evaluated, failurePolicy Fail", spec: "  matchConditions: [{name: c, expression: object.data.absent == 'x'}]\n" + denyAll, matched: denied, sees: "no such key: absent"},
		{fault: "a match condition cannot be evaluated, failurePolicy Ignore", spec: "  failurePolicy: Ignore\n  matchConditions: [{name: c, expression: object.data.absent == 'x'}]\n" + denyAll},
		{fault: "a variable that a validation uses cannot be evaluated", spec: "  variables: [{name: v, expression: object.data.absent}]\n  validations: [{expression: variables.v == 'x'}]\n", matched: denied, sees: "no such key: absent"},
		{fault: "a messageExpression cannot be evaluated", spec: "  validations: [{expression: 'false', messageExpression: string(object.data.absent), message: refused}]\n", matched: denied, sees: p + "refused"},
		{fault: "an audit annotation cannot be evaluated, failurePolicy Fail, action Audit", spec: "  auditAnnotations: [{key: k, valueExpression: string(object.data.absent)}]\n", binding: "  validationActions: [Audit]\n", matched: denied, sees: "no such key: absent"},
		{fault: "an audit annotation cannot be evaluated, failurePolicy Ignore", spec: "  failurePolicy: Ignore\n  auditAnnotations: [{key: k, valueExpression: string(object.data.absent)}]\n"},
		{
			fault: "a validation divides by zero, the other is false", spec: "  validations: [{expression: '1 / size(object.data.a.substring(1)) == 0'}, {expression: 'false', message: refused}]\n",
			matched: denied, sees: "division by zero",
		},
		{fault: "a validation asks the object for what only an UPDATE has", spec: "  validations: [{expression: oldObject.data.a == object.data.a}]\n", matched: denied, sees: "no such key: data"},
	}
}

// bindingRows are about bindings and params.
func bindingRows() []row {
	const (
		byConfigMap = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n" + denyAll
		byUnknown   = "  paramKind: {apiVersion: example.com/v1, kind: Limit}\n" + denyAll
	)
	return []row{
		{fault: "no binding names the policy", spec: denyAll, binding: "none"},
		{fault: "the param does not exist, parameterNotFoundAction Deny", spec: byConfigMap, binding: "  paramRef: {name: absent, parameterNotFoundAction: Deny}\n", matched: denied, sees: "no params found for policy binding with `Deny` parameterNotFoundAction"},
		{fault: "the param does not exist, parameterNotFoundAction Deny, failurePolicy Ignore", spec: "  failurePolicy: Ignore\n" + byConfigMap, binding: "  paramRef: {name: absent, parameterNotFoundAction: Deny}\n"},
		{fault: "the param does not exist, parameterNotFoundAction Allow", spec: byConfigMap, binding: "  paramRef: {name: absent, parameterNotFoundAction: Allow}\n"},
		{fault: "the cluster has no such paramKind", spec: byUnknown, binding: "  paramRef: {name: l, parameterNotFoundAction: Allow}\n", matched: denied, sees: "failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'"},
		{fault: "the cluster has no such paramKind, failurePolicy Ignore", spec: "  failurePolicy: Ignore\n" + byUnknown, binding: "  paramRef: {name: l, parameterNotFoundAction: Allow}\n"},
		{
			fault: "a param in a namespace for a request that has none", spec: byConfigMap, binding: "  paramRef: {name: l, parameterNotFoundAction: Allow}\n",
			match:   "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [nodes]}]}\n",
			request: `{"namespace": "", "kind": {"version": "v1", "kind": "Node"}, "resource": {"version": "v1", "resource": "nodes"}}`,
			matched: denied, sees: "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
		},
		{
			fault: "one binding has no param, another of the same policy has none to find", spec: byConfigMap, binding: "  paramRef: {name: absent, parameterNotFoundAction: Allow}\n",
			more:    []string{strings.Replace(bindingManifest("p", "  paramRef: {name: absent, parameterNotFoundAction: Deny}\n"), "{name: p}", "{name: r}", 1)},
			matched: denied, sees: "with binding 'r' denied request: failed to configure binding: no params found",
		},
	}
}

// matchRows are about matching.
func matchRows() []row {
	const nowhere = `{"namespace": "nowhere", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "nowhere"}, "data": {"a": "x"}}}`
	const selects = "  matchConstraints: {namespaceSelector: {matchLabels: {environment: test}}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}\n"
	return []row{
		{fault: "the namespace of the request is not known, and a selector needs it", match: selects, spec: denyAll, request: nowhere, matched: "denied (422)", sees: `namespaces "nowhere" not found`},
		{fault: "the same, failurePolicy Ignore", match: selects, spec: "  failurePolicy: Ignore\n" + denyAll, request: nowhere},
		{fault: "the namespace of the request is not known, and an expression needs it", spec: "  validations: [{expression: namespaceObject.metadata.name == 'x'}]\n", request: nowhere, matched: denied, sees: `namespaces "nowhere" not found`},
		{
			fault: "a rule names another version, and the object is not what its kind says",
			match: "  matchConstraints: {matchPolicy: Equivalent, resourceRules: [{apiGroups: [autoscaling], apiVersions: [v1], operations: ['*'], resources: [horizontalpodautoscalers]}]}\n", spec: denyAll,
			request: `{"kind": {"group": "autoscaling", "version": "v2", "kind": "HorizontalPodAutoscaler"}, "resource": {"group": "autoscaling", "version": "v2", "resource": "horizontalpodautoscalers"}, "object": {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "default"}, "spec": 5}}`,
			matched: denied, sees: "unable to convert",
		},
		{
			fault: "a policy matches everything; the request is for a policy of ours", match: takesAll, spec: denyAll,
			request: `{"namespace": "", "kind": {"group": "policy.portcullis.dev", "version": "v1alpha1", "kind": "ValidatingAdmissionPolicy"}, "resource": {"group": "policy.portcullis.dev", "version": "v1alpha1", "resource": "validatingadmissionpolicies"}}`,
			other:   denied,
		},
		{
			fault: "a policy matches everything; the request is a TokenReview", match: takesAll, spec: denyAll,
			request: `{"namespace": "", "kind": {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenReview"}, "resource": {"group": "authentication.k8s.io", "version": "v1", "resource": "tokenreviews"}}`,
			other:   denied,
		},
	}
}

// storedRows are about what is in etcd, written there by something else: the
// policy p itself is left out, and its value put in its place.
func storedRows() []row {
	const (
		head    = `{"kind":"ValidatingAdmissionPolicy","apiVersion":"policy.portcullis.dev/v1alpha1","metadata":{"name":"p","uid":"u","generation":1},"spec":{`
		matches = `"matchConstraints":{"matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"],"scope":"*"}]}`
		faulty  = head + `"failurePolicy":"Fail",` + matches + `,"validations":[{"expression":"object.("}]}}`
		unread  = head + `"failurePolicy":"Fail",` + matches + `,"validations":"none"}}`
		ignored = `"failurePolicy":"Ignore"`
		decode  = p + "the stored object cannot be decoded"
		policy  = "validatingadmissionpolicies/p"
		bound   = "validatingadmissionpolicybindings/p"
	)
	ignore := func(value string) string { return strings.Replace(value, `"failurePolicy":"Fail"`, ignored, 1) }
	return []row{
		{fault: "a stored policy does not compile, failurePolicy Fail", spec: denyAll, do: overwrite(policy, faulty), matched: denied, sees: p + "compilation error"},
		{fault: "a stored policy does not compile, failurePolicy Ignore", spec: denyAll, do: overwrite(policy, ignore(faulty))},
		{fault: "a stored policy cannot be decoded, what it matches can, failurePolicy Fail", spec: denyAll, do: overwrite(policy, unread), matched: denied, sees: decode},
		{fault: "a stored policy cannot be decoded, what it matches can, failurePolicy Ignore", spec: denyAll, do: overwrite(policy, ignore(unread))},
		{fault: "a stored policy is garbage: all requests follow Fail", spec: denyAll, do: overwrite(policy, "\x00\x01garbage"), matched: denied, other: denied, sees: decode},
		{fault: "a stored policy is cut off", spec: denyAll, do: overwrite(policy, unread[:len(unread)-20]), matched: denied, sees: decode},
		{fault: "a stored policy is of a version that nobody knows", spec: denyAll, do: overwrite(policy, strings.Replace(unread, "v1alpha1", "v9", 1)), matched: denied, sees: decode},
		{fault: "a stored binding is garbage: it binds every policy, with Deny", spec: denyAll, binding: "  validationActions: [Audit]\n", do: overwrite(bound, "garbage"), matched: denied, sees: "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: refused"},
	}
}

// callerRows are about who asks.
func callerRows() []row {
	return []row{
		{fault: "a caller without credentials; the body is not read", spec: denyAll, as: anonymous, matched: "HTTP 403", sees: "cannot post path"},
		{fault: "a caller with a token that nobody knows", spec: denyAll, as: stranger, matched: "HTTP 401", sees: "Unauthorized"},
		{fault: "a caller who says in a header that he is somebody else", spec: denyAll, as: impostor, matched: "HTTP 403", sees: "cannot post path"},
	}
}

// elsewhere are faults that need more than a request to a running server. Their
// tests are named.
func elsewhere() []row {
	return []row{
		{fault: "a policy panics, failurePolicy Fail", matched: denied, sees: "the policy panicked", test: "pkg/admission/chain TestRunOrderAndContainment"},
		{fault: "a policy panics, failurePolicy Ignore", test: "pkg/admission/chain TestRunOrderAndContainment"},
		{fault: "policies, bindings and params multiply to too many evaluations", matched: "HTTP 503", sees: "bind fewer params", test: "pkg/admission/chain TestTooManyEvaluations"},
		{fault: "the time ends while the last policy judges, failurePolicy Ignore", matched: "HTTP 503", sees: "the time for judging the request has ended", test: "pkg/admission/chain TestTimeEndsInTheLastPolicy"},
		{fault: "the server has not read all policies yet", matched: "HTTP 503", other: "HTTP 503", sees: "not yet ready to handle request", test: "pkg/admission/chain TestNotReadyIsAnError"},
	}
}

// waysAroundRows are requests that try to pass a policy by.
func waysAroundRows() []row {
	const (
		small = "  validations: [{expression: \"object.data.a == 'small'\", message: too big}]\n"
		pods  = "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods, pods/*]}]}\n"
		pod   = `"kind": {"version": "v1", "kind": "Pod"}, "resource": {"version": "v1", "resource": "pods"}`
	)
	return []row{
		{fault: "an UPDATE of an object that is being deleted", spec: small, request: `{"operation": "UPDATE", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["x.dev/y"]}, "data": {"a": "big"}}, "oldObject": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"a": "small"}}}`, matched: denied, sees: p + "too big"},
		{fault: "a dry run", spec: small, request: `{"dryRun": true}`, matched: denied, sees: p + "too big"},
		{fault: "an object without a name, by generateName", spec: small, request: `{"name": "", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "c-", "namespace": "default"}, "data": {"a": "big"}}}`, matched: denied, sees: p + "too big"},
		{fault: "a subresource: pods/ephemeralcontainers, under a rule for pods/*", match: pods, spec: denyAll, request: `{"operation": "UPDATE", "subResource": "ephemeralcontainers", ` + pod + `, "oldObject": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c", "namespace": "default"}}}`, matched: denied, sees: p + "refused"},
		{fault: "a CONNECT to pods/exec, under a rule for pods/*", match: pods, spec: denyAll, request: `{"operation": "CONNECT", "subResource": "exec", "kind": {"version": "v1", "kind": "PodExecOptions"}, "resource": {"version": "v1", "resource": "pods"}, "object": {"apiVersion": "v1", "kind": "PodExecOptions", "command": ["sh"]}}`, matched: denied, sees: p + "refused"},
		{fault: "a DELETE, which has no object", match: pods, spec: "  validations: [{expression: 'object != null', message: gone}]\n", request: `{"operation": "DELETE", "object": null, ` + pod + `, "oldObject": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c", "namespace": "default"}}}`, matched: denied, sees: p + "gone"},
		{fault: "a DELETE of a collection, which has no name and no object", match: pods, spec: denyAll, request: `{"operation": "DELETE", "name": "", "object": null, ` + pod + `}`, matched: denied, sees: p + "refused"},
		{fault: "a key twice: the last one counts, as in kube-apiserver", spec: small, body: duplicated(`"data": {"a": "small", "a": "big"}`), matched: denied, sees: p + "too big"},
		{fault: "an object twice in the object: the last one counts", spec: small, body: duplicated(`"data": {"a": "small"}, "data": {"a": "big"}`), matched: denied, sees: p + "too big"},
		{fault: "a key in other letters is another key", spec: small, body: duplicated(`"Data": {"a": "small"}, "data": {"a": "big", "A": "small"}`), matched: denied, sees: p + "too big"},
		{fault: "the object twice in the request: the last one counts", spec: small, body: strings.Replace(duplicated(`"data": {"a": "big"}`), `"object":`, `"object": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "small"}}, "object":`, 1), matched: denied, sees: p + "too big"},
		{fault: "the object in other letters is no object", spec: small, body: strings.Replace(duplicated(`"data": {"a": "small"}`), `"object":`, `"Object":`, 1), matched: "HTTP 400", sees: "request.object: required for CREATE"},
		{fault: "labels that are no texts, under an objectSelector", match: "  matchConstraints: {objectSelector: {matchExpressions: [{key: skip, operator: DoesNotExist}]}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}\n", spec: denyAll, request: `{"object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default", "labels": {"skip": 1}}}}`, matched: "HTTP 400", sees: "request.object: metadata.labels: does not fit ObjectMeta"},
	}
}

func duplicated(fields string) string {
	return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","name":"c","namespace":"default","kind":{"group":"","version":"v1","kind":"ConfigMap"},"resource":{"group":"","version":"v1","resource":"configmaps"},"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"},` + fields + `}}}`
}

// bodyRows are reviews that cannot be read.
func bodyRows() []row {
	const bad = "HTTP 400"
	return []row{
		{fault: "a review that ends too early", spec: denyAll, body: `{"apiVersion":"admission.k8s.io/v1","kind":"Admission`, matched: bad, sees: "not a usable AdmissionReview"},
		{fault: "a review of another version", spec: denyAll, body: `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"1"}}`, matched: bad, sees: "admission.k8s.io/v1"},
		{fault: "a review without a request", spec: denyAll, body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, matched: bad, sees: "request: required"},
		{fault: "a request without a uid", spec: denyAll, request: `{"uid": ""}`, matched: bad, sees: "request.uid: required"},
		{fault: "an operation that nobody knows", spec: denyAll, request: `{"operation": "PATCH"}`, matched: bad, sees: "request.operation"},
		{fault: "an object that is no object", spec: denyAll, request: `{"object": [1]}`, matched: bad, sees: "request.object"},
		{fault: "a CREATE without an object", spec: denyAll, request: `{"object": null}`, matched: bad, sees: "request.object: required for CREATE"},
		{fault: "a resource without a version", spec: denyAll, request: `{"resource": {"resource": "configmaps"}}`, matched: bad, sees: "request.resource"},
		{fault: "two reviews in one body", spec: denyAll, body: duplicated(`"data":{}`) + duplicated(`"data":{}`), matched: bad, sees: "not a usable AdmissionReview"},
		{fault: "a number that no one can hold", spec: denyAll, body: duplicated(`"data":{"a":1e999}`), matched: bad, sees: "not a usable AdmissionReview"},
		{fault: "10,001 levels of nesting", spec: denyAll, body: duplicated(`"data":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)), matched: bad, sees: "nested more than 10000 levels deep"},
		{fault: "a body of more than 16 MiB", spec: denyAll, body: duplicated(`"data":{"a":"` + strings.Repeat("x", 16<<20) + `"}`), matched: "HTTP 413", sees: "larger than 16777216 bytes"},
		{fault: "a caller who leaves no time", spec: denyAll, path: "?timeout=1ns", cut: true, matched: "HTTP 504", sees: "request did not complete within the allotted timeout"},
	}
}
