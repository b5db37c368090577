// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// seen is all that a policy is told of a request but what is different each time.
const seen = `[request.operation, request.kind.group, request.kind.version, request.kind.kind, request.resource.group, request.resource.version, request.resource.resource,
  has(request.subResource) ? request.subResource : '-', request.requestKind.group, request.requestKind.version, request.requestKind.kind,
  request.requestResource.group, request.requestResource.version, request.requestResource.resource, has(request.requestSubResource) ? request.requestSubResource : '-',
  has(request.name) ? request.name : '-', has(request.namespace) ? request.namespace : '-', string(has(request.dryRun) && request.dryRun), request.userInfo.username, string(size(request.userInfo.groups)),
  object == null ? 'none' : dyn(object).apiVersion + ' ' + dyn(object).kind + ' ' + (has(dyn(object).metadata) ? 'uid ' + string(has(dyn(object).metadata.uid)) + ' at ' + string(has(dyn(object).metadata.resourceVersion)) + ' by ' + string(has(dyn(object).metadata.managedFields)) : '-'),
  oldObject == null ? 'none' : dyn(oldObject).apiVersion + ' ' + dyn(oldObject).kind + ' uid ' + string(has(dyn(oldObject).metadata.uid)),
  has(request.options) && dyn(request.options) != null ? string(request.options.kind) : '-',
  namespaceObject == null ? 'none' : namespaceObject.metadata.name + ' ' + string(size(namespaceObject.metadata.labels)) + (has(namespaceObject.status) ? namespaceObject.status.phase : '')].join('|')`

// likePolicies are policies of which kube-apiserver has the same ones. All warn.
func likePolicies(group string) map[string]string {
	rules := func(rules string) string { return `resourceRules: [` + rules + `]` }
	warn := func(match, rest string) string { return `{matchConstraints: {` + match + `}, ` + rest + `}` }
	shown := `validations: [{expression: 'false', messageExpression: "` + strings.Join(strings.Fields(seen), " ") + `"}]`
	const everything = `{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'], scope: '*'}`
	say := func(expression string) string {
		return `validations: [{expression: 'false', messageExpression: "` + expression + `"}]`
	}
	return map[string]string{
		"all":        warn(rules(everything), shown),
		"selected":   warn(`namespaceSelector: {matchLabels: {like: 'yes'}}, `+rules(everything), say(`'selected'`)),
		"unselected": warn(`namespaceSelector: {matchExpressions: [{key: like, operator: DoesNotExist}]}, `+rules(everything), say(`'unselected'`)),
		"objects":    warn(`objectSelector: {matchLabels: {like: 'yes'}}, `+rules(everything), say(`'objects'`)),
		"cluster":    warn(rules(`{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], scope: Cluster}`), say(`'cluster'`)),
		"named":      warn(rules(`{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], resourceNames: [like-a]}`), say(`'named'`)),
		"excluded":   warn(rules(everything)+`, excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: ['*/*']}]`, say(`'not core'`)),
		"hpa-v2":     warn(rules(`{apiGroups: [autoscaling], apiVersions: [v2], operations: [CREATE, UPDATE, DELETE], resources: [horizontalpodautoscalers]}`), say(`object == null ? 'v2 goes' : request.kind.version + ' ' + object.spec.metrics[0].type + string(object.spec.metrics[0].resource.target.averageUtilization)`)),
		"hpa-v1":     warn(rules(`{apiGroups: [autoscaling], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [horizontalpodautoscalers]}`), say(`object == null ? 'v1 goes' : request.kind.version + ' ' + string(object.spec.targetCPUUtilizationPercentage)`)),
		"limits-v1":  warn(rules(`{apiGroups: [`+group+`], apiVersions: [v1], operations: ['*'], resources: [limits]}`), say(`object == null ? 'goes' : object.apiVersion + ' ' + request.requestKind.version`)),
		"limits-v2":  warn(`matchPolicy: Exact, `+rules(`{apiGroups: [`+group+`], apiVersions: [v2], operations: ['*'], resources: [limits]}`), say(`object == null ? 'goes' : string(object.apiVersion)`)),
		"scales":     warn(rules(`{apiGroups: [apps], apiVersions: [v1], operations: ['*'], resources: ['deployments/scale', 'deployments/status']}`), say(`object.kind + ' ' + string(object.spec.replicas) + ' was ' + string(oldObject.spec.replicas)`)),
		"pods-any":   warn(rules(`{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: ['pods/*']}`), say(`request.subResource + ' ' + (object == null ? 'none' : dyn(object).kind)`)),
		"authorizer": warn(rules(everything), `validations: [{expression: "!authorizer.requestResource.check('get').allowed()", message: may get}, {expression: "authorizer.requestResource.check('get').reason() != ''", message: no reason},
		  {expression: "authorizer.serviceAccount('like', 'like').group('').resource('pods').check('get').allowed()", message: the account may not}]`),
		"error":       warn(rules(everything), `validations: [{expression: "object.spec.nothing.at.all == 1"}]`),
		"annotations": warn(rules(`{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [configmaps, secrets, namespaces]}`), say(`oldObject.metadata.name + ' of ' + string(has(oldObject.data))`)),
	}
}

const like = "like"

// TestLikeKubeAPIServer: of each request, policies see what the same policies of
// kube-apiserver see, though they are told by a webhook: both warn.
func TestLikeKubeAPIServer(t *testing.T) {
	const group = "like.example.com"
	newNamespace(t, like, map[string]string{"like": "yes"})
	define(t, group, "v1", "v2")
	for name, spec := range likePolicies(group) {
		mine, theirs := "like-mine-"+name+".example.com", "like-them-"+name+".example.com"
		const conditions = `matchConditions: [{name: like, expression: "(has(request.namespace) && request.namespace == 'like') || request.name.startsWith('like')"}], `
		spec = `{` + conditions + strings.TrimPrefix(spec, `{`)
		store(t, theirsVersion, bindingKind, theirs, `{policyName: `+theirs+`, validationActions: [Warn]}`)
		store(t, theirsVersion, policyKind, theirs, spec)
		binding := newBinding(t, mine, `{validationActions: [Warn]}`)
		binding.Spec.MatchResources = nil
		storeBinding(t, binding)
		storePolicy(t, newPolicy(t, mine, spec))
	}
	// kube-apiserver takes policies into force in the order in which they were stored.
	const last = "like-them-last.example.com"
	store(t, theirsVersion, bindingKind, last, `{policyName: `+last+`, validationActions: [Warn]}`)
	store(t, theirsVersion, policyKind, last, `{matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]},
	  matchConditions: [{name: last, expression: "request.name == 'last'"}], validations: [{expression: 'false', message: last}]}`)
	eventually(t, "both to be in force", func(ctx context.Context) error {
		heard, err := hear(admin, func(p *person) error {
			_, err := p.kube.CoreV1().ConfigMaps(like).Create(ctx, configMap("last", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
		if err == nil && !strings.Contains(strings.Join(heard, ""), last) {
			err = fmt.Errorf("heard %q", heard)
		}
		return err
	})
	compared := 0
	for _, step := range likeSteps(t, group) {
		texts, err := step.compare(t.Context())
		if step.follows {
			eventually(t, step.name, func(ctx context.Context) error {
				texts, err = step.compare(ctx)
				return err
			})
		}
		if err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		compared += texts
	}
	t.Logf("compared %d different warnings with those of kube-apiserver", compared)
}

// likeStep is a request, which may fail for what it is about.
type likeStep struct {
	name  string
	fails bool
	// follows says that the step before has to be known everywhere, and that the request
	// may be sent again until it is.
	follows bool
	do      func(context.Context, *person) error
}

// compare sends the request, and returns how many different warnings there were. It fails
// unless ours and theirs say the same, and something.
func (s likeStep) compare(ctx context.Context) (texts int, err error) {
	heard, err := hear(admin, func(p *person) error { return s.do(ctx, p) })
	if s.fails {
		err = nil
	}
	more := map[string]int{} // how often ours say so beyond how often theirs do
	for _, text := range heard {
		if of := strings.ReplaceAll(text, "like-mine-", ""); of != text {
			more[of]++
		} else {
			more[strings.ReplaceAll(text, "like-them-", "")]--
		}
	}
	failures := []error{err}
	for _, text := range slices.Sorted(maps.Keys(more)) {
		if more[text] != 0 {
			failures = append(failures, fmt.Errorf("ours say %d times more than theirs: %s", more[text], text))
		}
	}
	if len(heard) == 0 {
		failures = append(failures, errors.New("nobody has said anything"))
	}
	return len(more), errors.Join(failures...)
}

func likeSteps(t *testing.T, group string) []likeStep {
	t.Helper()
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	of := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	create := func(resource schema.GroupVersionResource, namespace, text string, sub ...string) likeStep {
		object := objectOf(t, text)
		return likeStep{name: "create " + resource.String() + strings.Join(sub, "/") + " " + object.GetName(), do: func(ctx context.Context, p *person) error {
			_, err := p.objects.Resource(resource).Namespace(namespace).Create(ctx, object.DeepCopy(), metav1.CreateOptions{}, sub...)
			return err
		}}
	}
	patch := func(resource schema.GroupVersionResource, namespace, name, body string, sub ...string) likeStep {
		return likeStep{name: "patch " + resource.String() + strings.Join(sub, "/") + " " + name, do: func(ctx context.Context, p *person) error {
			_, err := p.objects.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
			return err
		}}
	}
	update := func(resource schema.GroupVersionResource, namespace, name string, change func(*unstructured.Unstructured), sub ...string) likeStep {
		return likeStep{name: "update " + resource.String() + strings.Join(sub, "/") + " " + name, do: func(ctx context.Context, p *person) error {
			objects := p.objects.Resource(resource).Namespace(namespace)
			return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				stored, err := objects.Get(ctx, name, metav1.GetOptions{}, sub...)
				if err == nil {
					change(stored)
					_, err = objects.Update(ctx, stored, metav1.UpdateOptions{}, sub...)
				}
				return err
			})
		}}
	}
	remove := func(resource schema.GroupVersionResource, namespace, name string, dry ...string) likeStep {
		return likeStep{name: "delete " + resource.String() + " " + name, do: func(ctx context.Context, p *person) error {
			return p.objects.Resource(resource).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{DryRun: dry})
		}}
	}
	apply := func(resource schema.GroupVersionResource, namespace, text string) likeStep {
		object := objectOf(t, text)
		return likeStep{name: "apply " + resource.String(), do: func(ctx context.Context, p *person) error {
			_, err := p.objects.Resource(resource).Namespace(namespace).Apply(ctx, object.GetName(), object.DeepCopy(), metav1.ApplyOptions{FieldManager: "like"})
			return err
		}}
	}
	connect := func(path string, parameters ...string) likeStep {
		return likeStep{name: "connect " + path, fails: true, do: func(ctx context.Context, p *person) error {
			request := p.kube.CoreV1().RESTClient().Verb(http.MethodPost).AbsPath("/api/v1/namespaces/like/" + path)
			for i := 0; i < len(parameters); i += 2 {
				request.Param(parameters[i], parameters[i+1])
			}
			return request.Do(ctx).Error()
		}}
	}
	following := func(step likeStep) likeStep {
		step.follows = true
		return step
	}
	label := func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"like": "yes"}) }
	const spec = `{selector: {matchLabels: {a: b}}, replicas: 1, paused: true, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}`
	hpa := func(version, metrics string) string {
		return `{apiVersion: autoscaling/` + version + `, kind: HorizontalPodAutoscaler, metadata: {name: like-` + version + `}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: like}, ` + metrics + `}}`
	}
	hpas := func(version string) schema.GroupVersionResource {
		return of("autoscaling", version, "horizontalpodautoscalers")
	}
	const metrics = `metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]`
	return []likeStep{
		create(configMaps, like, `{apiVersion: v1, kind: ConfigMap, metadata: {name: like-a}}`),
		create(configMaps, like, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: like-}}`),
		update(configMaps, like, "like-a", label),
		patch(configMaps, like, "like-a", `{"data": {"a": "b"}}`),
		apply(configMaps, like, `{apiVersion: v1, kind: ConfigMap, metadata: {name: like-applied, labels: {like: 'yes'}}}`),
		apply(configMaps, like, `{apiVersion: v1, kind: ConfigMap, metadata: {name: like-applied}, data: {a: b}}`),
		remove(configMaps, like, "like-applied", metav1.DryRunAll),
		remove(configMaps, like, "like-applied"),
		{name: "delete a collection", do: func(ctx context.Context, p *person) error {
			return p.kube.CoreV1().ConfigMaps(like).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=like-a"})
		}},
		create(core("namespaces"), "", `{apiVersion: v1, kind: Namespace, metadata: {name: like-namespace, labels: {like: 'yes'}}}`),
		patch(core("namespaces"), "", "like-namespace", `{"metadata": {"labels": {"like": null}}}`),
		patch(core("namespaces"), "", "like-namespace", `{"metadata": {"labels": {"like": "yes"}}}`),
		following(patch(core("namespaces"), "", "like-namespace", `{"metadata": {"annotations": {"a": "b"}}}`, "status")),
		remove(core("namespaces"), "", "like-namespace"),
		create(of("rbac.authorization.k8s.io", "v1", "clusterroles"), "", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: like, labels: {like: 'yes'}}, rules: []}`),
		remove(of("rbac.authorization.k8s.io", "v1", "clusterroles"), "", "like"),
		create(of("scheduling.k8s.io", "v1", "priorityclasses"), "", `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: like}, value: 1}`),
		remove(of("scheduling.k8s.io", "v1", "priorityclasses"), "", "like"),
		create(core("nodes"), "", `{apiVersion: v1, kind: Node, metadata: {name: like-node}}`),
		patch(core("nodes"), "", "like-node", `{"status": {"nodeInfo": {"machineID": "a"}}}`, "status"),
		remove(core("nodes"), "", "like-node"),
		create(deployments, like, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: like}, spec: `+spec+`}`),
		update(deployments, like, "like", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, int64(3), "spec", "replicas")
		}, "scale"),
		patch(deployments, like, "like", `{"spec": {"replicas": 2}}`, "scale"),
		patch(deployments, like, "like", `{"status": {"collisionCount": 1}}`, "status"),
		remove(deployments, like, "like"),
		create(core("pods"), like, `{apiVersion: v1, kind: Pod, metadata: {name: like}, spec: {serviceAccountName: default, containers: [{name: c, image: i}]}}`),
		patch(core("pods"), like, "like", `{"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}`, "ephemeralcontainers"),
		patch(core("pods"), like, "like", `{"status": {"message": "a"}}`, "status"),
		create(core("pods"), like, `{apiVersion: policy/v1, kind: Eviction, metadata: {name: like}, deleteOptions: {dryRun: [All]}}`, "eviction"),
		connect("pods/like/exec", "command", "ls", "stdout", "true"),
		connect("pods/like/portforward", "ports", "80"),
		connect("pods/like/proxy/path"),
		create(core("pods"), like, `{apiVersion: v1, kind: Binding, metadata: {name: like}, target: {kind: Node, name: nowhere}}`, "binding"),
		remove(core("pods"), like, "like"),
		create(core("services"), like, `{apiVersion: v1, kind: Service, metadata: {name: like}, spec: {ports: [{port: 80}]}}`),
		connect("services/like/proxy/"),
		remove(core("services"), like, "like"),
		create(core("serviceaccounts"), like, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: like}}`),
		create(core("serviceaccounts"), like, `{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, metadata: {name: like}, spec: {audiences: [a]}}`, "token"),
		create(core("secrets"), like, `{apiVersion: v1, kind: Secret, metadata: {name: like}, stringData: {a: b}}`),
		remove(core("secrets"), like, "like"),
		create(hpas("v1"), like, hpa("v1", `targetCPUUtilizationPercentage: 50`)),
		create(hpas("v2"), like, hpa("v2", metrics)),
		patch(hpas("v2"), like, "like-v1", `{"spec": {"maxReplicas": 4}}`),
		patch(hpas("v1"), like, "like-v2", `{"spec": {"maxReplicas": 4}}`),
		remove(hpas("v1"), like, "like-v2"),
		remove(hpas("v2"), like, "like-v1"),
		create(of(group, "v1", "limits"), like, `{apiVersion: `+group+`/v1, kind: Limit, metadata: {name: like-1}}`),
		create(of(group, "v2", "limits"), like, `{apiVersion: `+group+`/v2, kind: Limit, metadata: {name: like-2}}`),
		patch(of(group, "v2", "limits"), like, "like-1", `{"spec": {"max": 4}}`),
		patch(of(group, "v1", "limits"), like, "like-2", `{"spec": {"max": 4}}`),
		remove(of(group, "v2", "limits"), like, "like-1"),
		remove(of(group, "v1", "limits"), like, "like-2"),
		create(core("events"), like, `{apiVersion: v1, kind: Event, metadata: {name: like}, involvedObject: {kind: Pod, name: like, namespace: like}, reason: a}`),
		patch(of("events.k8s.io", "v1", "events"), like, "like", `{"metadata": {"labels": {"like": "yes"}}}`),
		create(of("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: likes.`+group+`}, spec: {group: `+group+`, scope: Cluster, names: {plural: likes, kind: Like}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`),
		remove(of("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "", "likes."+group),
	}
}
