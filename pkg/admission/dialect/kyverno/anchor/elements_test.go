// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package anchor_test

import "testing"

func TestElements(t *testing.T) {
	t.Parallel()
	check(t, []rule{
		{"all", "{spec: {containers: [{(image): '*', tty: true}]}}", "{spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", "{spec: {containers: [{name: a, image: x, tty: true}, {name: b, image: y, tty: true}]}}", ""},
		{"those that match come first", "{spec: {containers: [{(image): '!*/*', tty: true}]}}", "{spec: {containers: [{name: a, image: x/y}, {name: b, image: z/y}, {name: c, image: y}]}}", "{spec: {containers: [{name: c, image: y, tty: true}, {name: a, image: x/y}, {name: b, image: z/y}]}}", ""},
		{"the order stays when nothing is merged", "{spec: {containers: [{(image): y, +(tty): true}]}}", "{spec: {containers: [{name: a, image: x}, {name: b, image: y, tty: false}]}}", "", ""},
		{"none gates nothing", "{spec: {containers: [{(image): '*nothere*'}], imagePullSecrets: [{name: s}]}}", "{spec: {containers: [{name: a, image: x}]}}", "{spec: {containers: [{name: a, image: x}], imagePullSecrets: [{name: s}]}}", ""},
		{"none", "{spec: {containers: [{(image): '*:latest', tty: true}]}}", "{spec: {containers: [{name: a, image: x}]}}", "", "condition (image) at spec.containers: no element matches"},
		{"none, and the rest is there", "{a: b, spec: {containers: [{(image): '*:latest', tty: true}]}}", "{a: b, spec: {containers: [{name: a, image: x}]}}", "", "condition (image) at spec.containers: no element matches"},
		{"no list", "{spec: {initContainers: [{(name): '*', tty: true}]}}", "{spec: {}}", "", "spec.initContainers: the object has no elements there"},
		{"null for a list", "{spec: {initContainers: [{(name): '*', tty: true}]}}", "{spec: {initContainers: null}}", "", "spec.initContainers: the object has no elements there"},
		{"several conditions", "{spec: {containers: [{(name): '*', (imagePullPolicy): 'A* | I*', stdin: true}]}}", "{spec: {containers: [{name: a, imagePullPolicy: Always}, {name: b, imagePullPolicy: Never}, {name: c}]}}", "{spec: {containers: [{name: a, imagePullPolicy: Always, stdin: true}, {name: b, imagePullPolicy: Never}, {name: c}]}}", ""},
		{"a condition in a map of the element", "{spec: {containers: [{securityContext: {(runAsUser): 0}, tty: true}]}}", "{spec: {containers: [{name: a, securityContext: {runAsUser: 0}}, {name: b}]}}", "{spec: {containers: [{name: a, securityContext: {runAsUser: 0}, tty: true}, {name: b}]}}", ""},
		{"a list in an element", "{spec: {containers: [{(name): a, env: [{(name): X, value: new}]}]}}", "{spec: {containers: [{name: a, env: [{name: W, value: v}, {name: X, value: v}]}, {name: b, env: [{name: X, value: v}]}]}}", "{spec: {containers: [{name: a, env: [{name: X, value: new}, {name: W, value: v}]}, {name: b, env: [{name: X, value: v}]}]}}", ""},
		{"what is merged of a condition with +", "{spec: {volumes: [{(emptyDir): {+(sizeLimit): 20Mi}, name: '*'}]}}", "{spec: {volumes: [{name: v1, hostPath: {path: /}}, {name: v2, emptyDir: {}}, {name: v3, emptyDir: {}}]}}", "{spec: {volumes: [{name: v2, emptyDir: {sizeLimit: 20Mi}}, {name: v3, emptyDir: {sizeLimit: 20Mi}}, {name: v1, hostPath: {path: /}}]}}", ""},
		{"delete those that match", "{spec: {containers: [{(image): x*, $patch: delete}]}}", "{spec: {containers: [{name: a, image: x1}, {name: b, image: y}, {name: c, image: x2}]}}", "{spec: {containers: [{name: b, image: y}]}}", ""},
		{"delete all", "{spec: {containers: [{(image): '*', $patch: delete}]}}", "{spec: {containers: [{name: a, image: x1}]}}", "{spec: {containers: []}}", ""},
		{"elements without anchors come first", "{spec: {containers: [{name: new, image: new}, {(name): b, tty: true}]}}", "{spec: {containers: [{name: a}, {name: b}]}}", "{spec: {containers: [{name: new, image: new}, {name: b, tty: true}, {name: a}]}}", ""},
		{"elements without anchors count more", "{spec: {containers: [{name: a, image: new}, {(name): '*', image: m, tty: true}]}}", "{spec: {containers: [{name: a, image: x}]}}", "{spec: {containers: [{name: a, image: new, tty: true}]}}", ""},
		{"values that look like anchors", "{spec: {containers: [{name: a, args: ['(x)']}]}}", "{spec: {containers: [{name: a}, {name: b}]}}", "{spec: {containers: [{name: a, args: ['(x)']}, {name: b}]}}", ""},
		{"elements that are no maps", "{spec: {containers: [{(name): a, tty: true}]}}", "{spec: {containers: [x, null, {name: a}]}}", "{spec: {containers: [{name: a, tty: true}, x, null]}}", ""},
	})
}

// TestEachElementOnItsOwn is about what Kyverno does to elements that nobody meant: it
// judges one copy of the overlay's element against one element of the object after the
// other.
func TestEachElementOnItsOwn(t *testing.T) {
	t.Parallel()
	const adds = "{spec: {containers: [{(name): '*', +(imagePullPolicy): Always}]}}"
	check(t, []rule{
		{"the second lacks it", adds, "{spec: {containers: [{name: a, imagePullPolicy: Never}, {name: b}]}}", "{spec: {containers: [{name: b, imagePullPolicy: Always}, {name: a, imagePullPolicy: Never}]}}", ""},
		{"the first lacks it", adds, "{spec: {containers: [{name: a}, {name: b, imagePullPolicy: Never}]}}", "{spec: {containers: [{name: a, imagePullPolicy: Always}, {name: b, imagePullPolicy: Never}]}}", ""},
		{"in a map", "{spec: {containers: [{(name): '*', securityContext: {+(a): 1, +(b): 2}}]}}", "{spec: {containers: [{name: a, securityContext: {a: 0}}, {name: b}]}}", "{spec: {containers: [{name: a, securityContext: {a: 0, b: 2}}, {name: b, securityContext: {a: 1, b: 2}}]}}", ""},
		{"in a list", "{spec: {containers: [{(name): '*', env: [{(name): X, value: new}]}]}}", "{spec: {containers: [{name: a, env: [{name: X, value: v}]}, {name: b, env: [{name: Y, value: v}]}]}}", "{spec: {containers: [{name: a, env: [{name: X, value: new}]}, {name: b, env: [{name: Y, value: v}]}]}}", ""},
		{"several elements with anchors", "{spec: {containers: [{(name): a, tty: true}, {(name): b, stdin: true}]}}", "{spec: {containers: [{name: a, image: x}, {name: b, image: y}]}}", "{spec: {containers: [{name: a, image: x, tty: true}, {name: b, image: y, stdin: true}]}}", ""},
		{"several for one element", "{spec: {containers: [{(name): a, tty: true}, {(image): x, stdin: true}]}}", "{spec: {containers: [{name: a, image: x}]}}", "{spec: {containers: [{name: a, image: x, tty: true, stdin: true}]}}", ""},
		{"a name without anchor", "{spec: {containers: [{name: b, +(tty): true}]}}", "{spec: {containers: [{name: a}, {name: b}]}}", "{spec: {containers: [{name: b, tty: true}, {name: a}]}}", ""},
		{"a name without anchor, deeper", "{spec: {containers: [{name: b, env: [{(name): X, value: new}]}]}}", "{spec: {containers: [{name: a, env: [{name: X}]}, {name: b, env: [{name: X}]}]}}", "{spec: {containers: [{name: b, env: [{name: X, value: new}]}, {name: a, env: [{name: X}]}]}}", ""},
		{"a name that is not there", "{spec: {containers: [{name: c, +(tty): true}]}}", "{spec: {containers: [{name: a}, {name: b}]}}", "", "spec.containers: no element matches"},
		{"a name with a wildcard", "{spec: {containers: [{name: 'b*', (image): x, tty: true}]}}", "{spec: {containers: [{name: a, image: x}, {name: b1, image: x}, {name: b2}]}}", "{spec: {containers: [{name: b1, image: x, tty: true}, {name: a, image: x}, {name: b2}]}}", ""},
		{"elements with the same name", "{spec: {containers: [{name: c, env: [{(name): A, (value): '1', value: '3'}]}]}}", "{spec: {containers: [{name: c, env: [{name: B}, {name: A, value: '1'}, {name: A, value: '2'}]}]}}", "{spec: {containers: [{name: c, env: [{name: A, value: '3'}, {name: B}, {name: A, value: '2'}]}]}}", ""},
	})
}

// TestElementsWithoutName is about elements that Kyverno cannot patch, since it gives
// the name of the object's element to the patch and nothing else.
func TestElementsWithoutName(t *testing.T) {
	t.Parallel()
	const ports = "{kind: Endpoints, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{name: plain, port: 80}, {name: secure-a, port: 443}]}, {ports: [{name: secure-b, port: 8443}, {port: 1}]}]}"
	check(t, []rule{
		{"ports of Endpoints", "{subsets: [{ports: [{(name): secure*, port: 6443}]}]}", ports, "{kind: Endpoints, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{name: plain, port: 80}, {name: secure-a, port: 6443}]}, {ports: [{name: secure-b, port: 6443}, {port: 1}]}]}", ""},
		{"ports of a Service", "{spec: {ports: [{(port): 80, protocol: UDP}]}}", "{kind: Service, apiVersion: v1, spec: {ports: [{port: 443}, {port: 80}]}}", "{kind: Service, apiVersion: v1, spec: {ports: [{port: 80, protocol: UDP}, {port: 443}]}}", ""},
		{"one of two ports with a number", "{spec: {ports: [{port: 53, protocol: TCP, +(name): dns-tcp}]}}", "{kind: Service, apiVersion: v1, spec: {ports: [{port: 53, protocol: UDP}, {port: 53}]}}", "{kind: Service, apiVersion: v1, spec: {ports: [{port: 53, protocol: UDP}, {port: 53, name: dns-tcp}]}}", ""},
		{"ports of a container", "{spec: {containers: [{(name): a, ports: [{(name): http, hostPort: 8}]}]}}", "{spec: {containers: [{name: a, ports: [{name: x, containerPort: 1, protocol: TCP}, {name: http, containerPort: 2, protocol: TCP}]}]}}", "{spec: {containers: [{name: a, ports: [{name: x, containerPort: 1, protocol: TCP}, {name: http, containerPort: 2, protocol: TCP, hostPort: 8}]}]}}", ""},
		{"a name where that is no key", "{spec: {containers: [{(name): a, volumeMounts: [{(mountPath): /b, name: new}]}]}}", "{spec: {containers: [{name: a, volumeMounts: [{mountPath: /a, name: x}, {mountPath: /b, name: y}]}]}}", "{spec: {containers: [{name: a, volumeMounts: [{mountPath: /b, name: new}, {mountPath: /a, name: x}]}]}}", ""},
		{"custom resources", "{spec: {nodes: [{(role): db, size: 2}]}}", "{kind: Widget, spec: {nodes: [{role: web}, {role: db, name: d}, {role: db}]}}", "{kind: Widget, spec: {nodes: [{role: web}, {role: db, name: d, size: 2}, {role: db, size: 2}]}}", ""},
		{"a name in a custom resource", "{spec: {nodes: [{name: b, +(size): 2}]}}", "{kind: Widget, spec: {nodes: [{name: a}, {name: b}]}}", "{kind: Widget, spec: {nodes: [{name: a}, {name: b, size: 2}]}}", ""},
		{"another element in a custom resource", "{spec: {nodes: [{role: new}, {(role): db, size: 2}]}}", "{kind: Widget, spec: {nodes: [{role: web}, {role: db}]}}", "{kind: Widget, spec: {nodes: [{role: new}, {role: web}, {role: db, size: 2}]}}", ""},
		{"another element that is there", "{spec: {nodes: [{role: new}, {(role): db, size: 2}]}}", "{kind: Widget, spec: {nodes: [{role: web}, {role: new}]}}", "", "condition (role) at spec.nodes: no element matches"},
		{"delete in a custom resource", "{spec: {nodes: [{(role): db, $patch: delete}]}}", "{kind: Widget, spec: {nodes: [{role: web}, {role: db}]}}", "{kind: Widget, spec: {nodes: [{role: web}]}}", ""},
		{"tolerations", "{spec: {tolerations: [{(key): a, effect: NoExecute}]}}", "{spec: {tolerations: [{key: b}, {key: a}]}}", "{spec: {tolerations: [{key: b}, {key: a, effect: NoExecute}]}}", ""},
		{"subjects of a RoleBinding", "{subjects: [{(kind): User, name: jane, apiGroup: x}]}", "{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, subjects: [{kind: Group, name: jane}, {kind: User, name: jane}, {kind: User, name: joe}]}", "{kind: RoleBinding, apiVersion: rbac.authorization.k8s.io/v1, subjects: [{kind: Group, name: jane}, {kind: User, name: jane, apiGroup: x}, {kind: User, name: joe}]}", ""},
	})
}
