// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// Expressions for all parts of policies. Most of them fail, or do not compile, in
// some of the places in which they are put.
var (
	booleans = []string{
		"true", "false", "object.spec.replicas <= 5", "object.spec.absent == 1", "object.metadata.name == 'web'", "object == null", "oldObject != null",
		"oldObject == null || object.spec.replicas >= oldObject.spec.replicas", "has(object.spec.paused)", "has(object.metadata.labels) && 'app' in object.metadata.labels",
		"object.spec.containers.all(c, c.image.startsWith('registry/'))", "object.spec.containers.exists(c, c.name == 'absent')", "object.spec.containers.exists_one(c, c.privileged == true)",
		"object.spec.containers.all(i, c, i < 3 && c.name != '')", "object.metadata.labels.all(k, v, k.size() + v.size() < 63)", "object.spec.containers.map(c, c.name) == ['a', 'b', 'c']",
		"params.limit > object.spec.replicas", "params == null", "params.data['key'] == 'value'", "request.operation == 'CREATE'", "request.resource.resource == 'deployments'",
		"request.requestResource.version == 'v1'", "request.subResource == ''", "has(request.subResource)", "request.namespace == 'default'", "request.userInfo.groups.exists(g, g == 'dev')",
		"request.userInfo.extra['k'][0] == 'v'", "request.dryRun == false", "request.options.fieldManager == 'm'", "request.absent == 1", "namespaceObject == null", "namespaceObject.metadata.labels['team'] == 'shop'",
		"namespaceObject.metadata.name == request.namespace", "has(namespaceObject.metadata.annotations)", "size(namespaceObject.metadata.ownerReferences) == 0",
		"authorizer.group('apps').resource('deployments').namespace('default').check('get').allowed()", "authorizer.requestResource.check('create').reason() == ''", "authorizer.path('/healthz').check('get').allowed()",
		"variables.number == 3", "variables.number > variables.other", "variables.names.exists(n, n == 'b')", "variables.fails == 1", "variables.broken == 1", "has(variables.number)", "has(variables.fails)", "variables.absent == 1", "variables.question",
		"dyn(variables).number == 3", "dyn(variables)['other'] != null", "size(dyn(variables)) > 0", "'number' in dyn(variables)", "'absent' in dyn(variables)", "dyn(variables) == dyn(variables)", "dyn(variables) == 1", "type(variables) == kubernetes.variables",
		"string(dyn(variables)) == ''", "dyn(variables).absent == 1", "dyn(variables)[1] == 1", "variables.?number.orValue(0) == 3", "dyn(variables).?absent.orValue(7) == 7",
		"1 / (object.spec.replicas - 3) > 0", "[1, 2, 3][object.spec.replicas] == 1", "[1, 2, 3][?9].orValue(0) == 0", "optional.of(1).or(optional.of(2)).value() == 1", "optional.none().orValue(object.absent) == 1", "object.?spec.?replicas.optMap(r, r * 2).orValue(0) == 6",
		"optional.ofNonZeroValue(0).or(optional.none()).hasValue()", "object[?'spec'].hasValue()", "{'a': 1}.?a.or({'b': 2}.?b).value() == 1", "{?'a': object.?absent}.size() == 0", "[?object.?absent, ?object.?kind].size() == 1",
		"object.metadata.name.matches('^w.b$')", "'web'.matches(object.metadata.name)", "'a'.matches(object.spec.regex)", "'abc 123'.find('[0-9]+') == '123'", "'a1b2'.findAll('[0-9]') == ['1', '2']", "'abc'.find(object.metadata.name) == ''",
		"quantity('1Gi').isGreaterThan(quantity('100Mi'))", "quantity(object.spec.cpu).isLessThan(quantity('2'))", "isQuantity(object.metadata.name)", "ip('10.0.0.1').family() == 4", "cidr('10.0.0.0/8').containsIP(ip(object.spec.ip))", "isIP(object.metadata.name)",
		"url('https://example.com/a?b=c').getHost() == 'example.com'", "url(object.metadata.name).getScheme() == ''", "semver('1.2.3').isLessThan(semver('1.3.0'))", "semver(object.metadata.name).major() == 1", "format.dns1123Label().validate(object.metadata.name).hasValue()",
		"sets.contains(['a', 'b', 'c'], object.spec.containers.map(c, c.name))", "sets.intersects([1, 2], [object.spec.replicas])", "[3, 1, 2].max() == 3 && [1, 2].sum() == 3", "object.spec.containers.map(c, c.name).isSorted()", "[1, 2, 2].distinct().size() == 2", "lists.range(object.spec.replicas).size() == 3", "[[1], [2]].flatten() == [1, 2]", "['b', 'a'].sort() == ['a', 'b']",
		"'a,b'.split(',').size() == 2", "object.metadata.name.upperAscii() == 'WEB'", "'%s is %d'.format([object.metadata.name, object.spec.replicas]) == 'web is 3'", "object.metadata.name.replace('w', 'x').substring(1) == 'eb'", "'x'.charAt(object.spec.replicas) == ''", "object.metadata.name.reverse() == 'bew'", "['a', 'b'].join(',') == 'a,b'",
		"object.spec.containers.transformList(i, c, i > 0, c.name).size() == 2", "object.metadata.labels.transformMap(k, v, v + k).size() == 2", "object.spec.containers.filter(c, c.name in ['a', 'b']).size() == 2", "object.spec.replicas in [1, 2, 3]", "object.spec.replicas in [1.0, 2.0, 3.0]", "object.spec.replicas == 3.0", "object.spec.ratio < 1",
		"timestamp(object.metadata.creationTimestamp) < timestamp('2030-01-01T00:00:00Z')", "duration('1h') > duration(object.spec.timeout)", "timestamp('2020-01-01T00:00:00Z').getHours() == 0", "int(object.metadata.name) == 1", "string(object.spec.replicas) == '3'", "type(object.spec.replicas) == int", "type(object.spec.replicas) == timestamp",
		"object.metadata.name", "object.spec.flag", "object.spec.flag == true", "1", "'text'", "null", "object.", "undeclared", "[1, 'a'].size() == 2", "duration('x') > duration('1s')", "kubernetes.variables{}.number == 1", "kubernetes.variables{number: 1}.number == 1", "cel.bind(x, 1, x == 1)", "(object.spec.flag == true ? object.spec.replicas : object.absent) == 3",
		"object.spec.replicas == 3 || object.absent == 1", "object.absent == 1 && object.spec.replicas == 4", "!(object.absent == 1)", "object.spec.containers[0].name == 'a' ? true : object.absent == 1", "object == object", "object.spec == oldObject.spec", "dyn(object.spec.replicas).startsWith('a')", "object.metadata.labels == {'app': 'web', 'tier': 'front'}", "[1, 2].all(variables, variables > 0)", ".object.spec.replicas == 3",
	}
	plain = []string{
		"true", "object == null || object.spec.replicas < 4", "request.name == 'web'", "object == null || object.spec.containers.all(c, c.image.startsWith('registry/'))", "request.userInfo.username == 'jane'", "namespaceObject == null || namespaceObject.metadata.name == 'default'",
	}
	expensive = []string{
		"object.spec.big.contains(object.spec.big)", "object.spec.big.contains(object.spec.big) && object.spec.big.contains(object.spec.big + 'x')", "oldObject.spec.big.contains('a') || variables.expensive", "variables.expensive", "variables.tooExpensive",
		"authorizer.path('/a').check('get').allowed() || authorizer.path('/b').check('get').allowed() || authorizer.path('/c').check('get').allowed()",
		"[1, 2].all(i, object.spec.big.contains(object.spec.big))",
	}
	tellings = []string{
		"", "", "'no'", "' trimmed '", "'two\\nlines'", "''", "'replicas: ' + string(object.spec.replicas)", "object.absent", "string(object.absent)", "string(variables.number)", "variables.names.join(',')", "string(variables.fails)", "'%s'.format([variables.names])", "params.message", "string(params.limit)",
		"request.name + namespaceObject.metadata.name", "authorizer.path('/').check('get').reason()", "'x'.replace('x', lists.range(60).map(i, '0123456789').join('')) + object.spec.big", "string(object.spec.big.contains(object.spec.big))", "null", "string(dyn(null))", "namespaceObject.metadata.?labels.team.orValue('none')", "variables.question ? 'a' : 'b'", "1", "size(dyn(namespaceObject).metadata) > 0 ? string(has(dyn(namespaceObject).metadata.managedFields)) : ''",
	}
	definitionPool = [][2]string{
		{"number", "object.spec.replicas"},
		{"number", "3"},
		{"other", "variables.number + 1"},
		{"other", "size(object.spec.containers)"},
		{"names", "object.spec.containers.map(c, c.name)"},
		{"fails", "object.absent"},
		{"broken", "object."},
		{"number", "'text'"},
		{"expensive", "object.spec.big.contains(object.spec.big)"},
		{"tooExpensive", "[1, 2].all(i, object.spec.big.contains(object.spec.big))"},
		{"question", "authorizer.path('/healthz').check('get').allowed()"},
		{"question", "request.resource.version == 'v1'"},
		{"question", "namespaceObject != null"},
		{"names", "variables.other == 3 ? ['b'] : ['x']"},
		{"namespace", "request.namespace"},
	}
)

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

type generator struct{ *rand.Rand }

func (g generator) of(list []string) string { return list[g.IntN(len(list))] }

func (g generator) boolean(dear bool) string {
	switch {
	case dear && g.IntN(2) == 0:
		return g.of(expensive)
	case g.IntN(2) == 0:
		return g.of(plain)
	case g.IntN(6) == 0:
		return fmt.Sprintf("(%s) %s (%s)", g.of(booleans), g.of([]string{"&&", "||", "=="}), g.of(booleans))
	case g.IntN(8) == 0:
		if each := g.of(booleans); !strings.Contains(each, "authorizer") && !strings.Contains(each, "question") {
			return fmt.Sprintf("object.spec.containers.%s(e, %s)", g.of([]string{"all", "exists"}), each)
		}
	}
	return g.of(booleans)
}

func (g generator) spec(dear bool) *admissionregistrationv1.ValidatingAdmissionPolicySpec {
	s := &admissionregistrationv1.ValidatingAdmissionPolicySpec{}
	if g.IntN(2) == 0 {
		s.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
	}
	for range g.IntN(5) {
		d := definitionPool[g.IntN(len(definitionPool))]
		if !dear && d[0] == "expensive" || !dear && d[0] == "tooExpensive" {
			continue
		}
		s.Variables = append(s.Variables, admissionregistrationv1.Variable{Name: d[0], Expression: d[1]})
	}
	for i := range max(0, g.IntN(8)-4) {
		s.MatchConditions = append(s.MatchConditions, admissionregistrationv1.MatchCondition{Name: fmt.Sprint("c", i), Expression: g.boolean(dear)})
	}
	for range g.IntN(5 + 30*g.IntN(2)*btoi(dear)) {
		v := admissionregistrationv1.Validation{Expression: g.boolean(dear), MessageExpression: g.of(tellings), Message: g.of([]string{"", " m ", "message"})}
		if g.IntN(3) == 0 {
			v.Reason = []*metav1.StatusReason{new(metav1.StatusReason), func() *metav1.StatusReason { r := metav1.StatusReasonForbidden; return &r }()}[g.IntN(2)]
		}
		s.Validations = append(s.Validations, v)
	}
	for i := range max(0, g.IntN(5)-2) {
		s.AuditAnnotations = append(s.AuditAnnotations, admissionregistrationv1.AuditAnnotation{Key: fmt.Sprint("k", i), ValueExpression: g.of(append(tellings, "variables.broken"))})
	}
	return s
}

func (g generator) object() *unstructured.Unstructured {
	containers := []any{}
	for i := range g.IntN(4) {
		containers = append(containers, map[string]any{"name": string(rune('a' + i)), "image": g.of([]string{"registry/", ""}) + "app:1", "privileged": g.IntN(2) == 0})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": g.of([]string{"web", "x y"}), "namespace": "default", "creationTimestamp": "2024-01-01T00:00:00Z", "labels": map[string]any{"app": "web", "tier": "front"}},
		"spec":     map[string]any{"replicas": int64(g.IntN(5)), "flag": g.IntN(2) == 0, "ratio": 0.5, "regex": g.of([]string{"a", "["}), "cpu": "1500m", "ip": "10.1.1.1", "timeout": "30m", "big": strings.Repeat("x", 9_900), "containers": containers},
	}}
}

func (g generator) input(t *testing.T, view cluster.View) policy.Input {
	t.Helper()
	fields := request.Fields{
		UID: "u", Name: "web", Namespace: "default", Operation: []admission.Operation{admission.Create, admission.Update, admission.Delete}[g.IntN(3)],
		Kind:     schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
		User:     &user.DefaultInfo{Name: "jane", Groups: []string{"dev", "ops"}, Extra: map[string][]string{"k": {"v"}}},
	}
	if fields.Operation != admission.Delete {
		fields.Object = g.object()
	}
	if fields.Operation != admission.Create {
		fields.OldObject = g.object()
	}
	if g.IntN(3) == 0 {
		fields.Namespace = ""
	}
	if g.IntN(2) == 0 {
		fields.Options = &unstructured.Unstructured{Object: map[string]any{"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "m"}}
	}
	req := request.New(fields)
	in := policy.Input{Request: req, View: view, Matched: cluster.Equivalent{Resource: req.Resource, Kind: req.Kind}}
	if g.IntN(3) == 0 {
		in.Matched.Resource.Version = "v1beta1"
	}
	if g.IntN(2) == 0 {
		in.Param = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "p"}, "limit": int64(4), "message": "from params", "data": map[string]any{"key": g.of([]string{"value", ""})}}}
	}
	return in
}

// TestUpstream judges random requests by random policies, here and in upstream.
func TestUpstream(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	view, err := offline.New([]*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": "default", "labels": map[string]any{"team": "shop"}, "managedFields": []any{map[string]any{"manager": "m"}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	compiler := newCompiler()
	outcomes := map[string]int{}
	rounds := 250
	if testing.Short() {
		rounds = 100
	}
	for round := range rounds {
		dear := round%3 == 0
		spec := g.spec(dear)
		p, faults := compiler.compile(spec)
		if p.unusable != nil {
			continue
		}
		engine := compileUpstream(t, spec)
		for range 6 {
			in := g.input(t, view)
			ns, err := p.namespace(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			want := engine.judge(t.Context(), in, attributesOf(t, in), ns)
			ways := map[string]parts{"counting": 0, "as it comes": p.fit(p.sizesOf(t, in))}
			if !dear {
				ways["lean"], ways["lean validations"], ways["lean conditions and annotations"] = everything(), parts(0).with(validations), parts(0).with(conditions).with(annotations)
			}
			for way, fit := range ways {
				if diff := cmp.Diff(want, p.judgeAs(t, in, fit), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("seed %d, %s: (-upstream +ours):\n%s\nfaults: %v\npolicy: %s\nrequest: %.2000v", seed, way, diff, faults, dump(spec), in.Request.Fields)
				}
			}
			outcomes[kindOf(want)]++
		}
	}
	t.Log(outcomes)
	for _, kind := range []string{"condition error", "condition false", "out of budget", "error", "denied", "allowed"} {
		if outcomes[kind] == 0 {
			t.Errorf("none of the policies has led to %q", kind)
		}
	}
}
