// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typing_test

type row struct {
	name   string
	policy *policySpec
	types  string   // that were checked, in short
	lines  []string // what is told, on one line each
	listed string   // the fields in status.typeChecking, if they are not those of lines
}

func rows() []row {
	const (
		deployment = "apps/v1, Kind=Deployment: ERROR: <input>:"
		first      = "spec.validations[0].expression: "
	)
	return []row{
		{name: "fits", policy: policy(on(deployments()), "validation: object.spec.replicas > 1"), types: "Deployment"},
		{
			name: "undefined field", policy: policy(on(deployments()), "validation: object.replicas > 1"), types: "Deployment",
			lines: []string{first + deployment + "1:7: undefined field 'replicas'"},
		},
		{
			name: "two types, one fits", policy: policy(on(rule("apps", "v1", "deployments,daemonsets")), "validation: object.spec.replicas > 1"), types: "DaemonSet Deployment",
			lines: []string{first + "apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'replicas'"},
		},
		{
			name: "two errors", policy: policy(on(deployments()), "validation: object.spec.a == 1 || object.spec.b == 2"), types: "Deployment",
			lines: []string{first + deployment + "1:12: undefined field 'a'; ERROR: <input>:1:34: undefined field 'b'"},
		},
		{
			name: "message", policy: policy(on(deployments()), "validation: object.spec.x > 1", "message: string(oldObject.spec.y)"), types: "Deployment",
			lines: []string{first + deployment + "1:12: undefined field 'x'", "spec.validations[0].messageExpression: " + deployment + "1:22: undefined field 'y'"},
		},
		{
			name: "operands", policy: policy(on(deployments()), "validation: object.spec.replicas == 'three'"), types: "Deployment",
			lines: []string{first + deployment + "1:22: found no matching overload for '_==_' applied to '(int, string)'"},
		},
		{
			name: "the name of a type", policy: policy(on(deployments()), "validation: object.spec == 'x'"), types: "Deployment",
			lines: []string{first + deployment + "1:13: found no matching overload for '_==_' applied to '(apps/v1.Deployment.spec, string)'"},
		},
		{
			name: "the name of a core type", policy: policy(on(rule("", "v1", "pods")), "validation: object.items.all(core, core.x) || object == 'x'"), types: "Pod",
			lines: []string{first + "/v1, Kind=Pod: ERROR: <input>:1:7: undefined field 'items'; ERROR: <input>:1:42: found no matching overload for '_==_' applied to '(core/v1.Pod, string)'"},
		},
		{
			name:   "objects that are not there",
			policy: policy(on(deployments()), "validation: object == null || oldObject != null && has(oldObject.spec.paused)"), types: "Deployment",
		},
		{
			name: "request and namespace", policy: policy(on(deployments()), "validation: request.nam == 'x'", "validation: namespaceObject.metadata.labels['a'] == 'b' && namespaceObject.kind == 'x'"), types: "Deployment",
			lines: []string{
				first + deployment + "1:8: undefined field 'nam'",
				"spec.validations[1].expression: " + deployment + "1:63: undefined field 'kind'",
			},
		},
		{
			name: "an untyped field", policy: policy(on(rule("example.com", "v1", "gadgets")), "validation: object.spec.port == 3 || object.spec.port == 'x'", "validation: object.spec.extra.a.b"), types: "Gadget",
			listed: "spec.validations[1].expression", // by mistake: there may be such a field
		},
		{
			// Upstream does not find limits, by mistake: a quantity is a text or a number.
			name: "quantities", types: "Deployment",
			policy: policy(on(deployments()), "validation: object.spec.template.spec.containers.all(c, has(c.resources.limits) && c.nope == 1)"),
			lines:  []string{first + deployment + "1:73: undefined field 'nope'"},
		},
		{
			name: "two versions of a custom type", policy: policy(on(rule("example.com", "v1,v1beta1", "gadgets")), "validation: object.spec.size == 'x'"), types: "Gadget Gadget",
			lines: []string{first + "example.com/v1beta1, Kind=Gadget: ERROR: <input>:1:12: undefined field 'size'"},
		},
		{
			name: "params", policy: policy(on(deployments()), "params: v1 ConfigMap", "validation: params.data.max > 3"), types: "Deployment",
			lines: []string{first + deployment + "1:17: found no matching overload for '_>_' applied to '(string, int)'"},
		},
		{
			name: "params of a custom type", types: "Deployment",
			policy: policy(
				on(deployments()), "params: example.com/v1 Gadget",
				"v: params.spec.max", "match: params.spec.mx > 1", "validation: object.spec.replicas > variables.v",
				"validation: object.spec.replicas == params.spec.size", "audit: string(params.spec.sice)",
			),
			lines: []string{
				"spec.validations[1].expression: " + deployment + "1:22: found no matching overload for '_==_' applied to '(int, string)'",
				"spec.matchConditions[0].expression: " + deployment + "1:12: undefined field 'mx'",
				"spec.auditAnnotations[0].valueExpression: " + deployment + "1:19: undefined field 'sice'",
			},
			listed: "spec.validations[1].expression",
		},
		{name: "params of an unknown type", policy: policy(on(deployments()), "params: nope.example.com/v1 Nope", "validation: params.anything == 1"), types: "Deployment"},
		{
			name: "params of the type of the object", policy: policy(on(rule("", "v1", "configmaps")), "params: v1 ConfigMap", "validation: object.data == params.data && params.dat == {}"), types: "ConfigMap",
			lines: []string{first + "/v1, Kind=ConfigMap: ERROR: <input>:1:37: undefined field 'dat'"},
		},
		{
			name: "a variable", policy: policy(on(deployments()), "c: object.spec.template.spec.volumes.map(v, v.name)", "validation: variables.c.all(c, c > 1)", "validation: variables.d"), types: "Deployment",
			lines: []string{
				first + deployment + "1:22: found no matching overload for '_>_' applied to '(string, int)'",
				"spec.validations[1].expression: " + deployment + "1:10: undefined field 'd'",
			},
		},
		{
			// As upstream: only scalars, lists and maps of them keep their types.
			name: "a variable that is an object", types: "Deployment",
			policy: policy(on(deployments()), "c: object.spec.template.spec.containers", "validation: variables.c.all(c, c.imag == 'x')"),
		},
		{
			name: "a wrong variable, not what reads it", policy: policy(on(deployments()), "a: object.spec.nope", "b: variables.a + 1", "validation: variables.b > 1"), types: "Deployment",
			lines: []string{"spec.variables[0].expression: " + deployment + "1:12: undefined field 'nope'"}, listed: "-",
		},
		{
			name: "a variable defined twice", policy: policy(on(deployments()), "a: object.spec.replicas", "a: object.metadata.name", "validation: variables.a > 1"), types: "Deployment",
			lines: []string{first + deployment + "1:13: found no matching overload for '_>_' applied to '(string, int)'"},
		},
		{
			name: "match conditions and annotations", types: "Deployment",
			policy: policy(on(deployments()), "match: object.spec.nope == 1", "match: object.spec.paused", "audit: object.metadata.nope + ''", "validation: object.spec.replicas > 0"),
			lines: []string{
				"spec.matchConditions[0].expression: " + deployment + "1:12: undefined field 'nope'",
				"spec.auditAnnotations[0].valueExpression: " + deployment + "1:16: undefined field 'nope'",
			},
			listed: "-",
		},
		{
			// Upstream finds errors in the validations, by mistake.
			name: "authorizer", types: "Deployment",
			policy: policy(
				on(deployments()), "v: authorizer.requestResource.check('x').allowed()", "match: !authorizer.requestResource.check('breakglass').allowed()",
				"validation: authorizer.group('').resource('pods').check('get').allowed()",
				"validation: authorizer.requestResource.check('x').allowed()",
				"validation: variables.v || authorizer.requestResource.check('x').allowed() && object.spec.nope",
				"audit: string(authorizer.requestResource.check('x').reason())",
			),
			lines:  []string{"spec.validations[2].expression: " + deployment + "1:78: undefined field 'nope'"},
			listed: "spec.validations[1].expression spec.validations[2].expression",
		},
		{name: "no rules", policy: policy(nil, "validation: object.nope")},
		{name: "a wildcard group", policy: policy(on(rule("*", "v1", "deployments")), "validation: object.nope")},
		{name: "a wildcard version", policy: policy(on(rule("apps", "*", "deployments")), "validation: object.nope")},
		{name: "wildcard resources", policy: policy(on(rule("apps", "v1", "*,deployments/scale,*/scale,deployments/*")), "validation: object.nope")},
		{
			name: "a wildcard, and unknown resources", policy: policy(on(rule("*", "*", "*"), rule("batch", "v1,v7", "frobs,jobs")), "validation: object.spec.nope == 1"), types: "Job",
			lines: []string{first + "batch/v1, Kind=Job: ERROR: <input>:1:12: undefined field 'nope'"},
		},
		{
			name: "ten of a rule end all", types: "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Event",
			policy: policy(on(
				rule("", "v1", "pods,services,configmaps,secrets,endpoints,serviceaccounts,persistentvolumeclaims,replicationcontrollers,resourcequotas,limitranges,podtemplates,events"),
				deployments(),
			), "validation: object.metadata.name == 'x'"),
		},
		{
			name: "nine of each rule", types: "Deployment Job",
			policy: policy(on(deployments(), deployments(), rule("batch,apps", "v1", "jobs,deployments")), "validation: object.metadata.name == 'x'"),
		},
		{
			name: "lines and excerpts", policy: policy(on(deployments()), "validation: object.spec.replicas > 1 &&\n | object.spec.nope == 1"), types: "Deployment",
			lines: []string{first + deployment + "2:2: Syntax error: token recognition error at: '| '"},
		},
	}
}
