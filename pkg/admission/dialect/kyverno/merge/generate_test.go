// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// generator makes random objects, and patches that often touch what the objects have.
type generator struct {
	*rand.Rand
	// builtIn says that the object is of a built-in kind.
	builtIn bool
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) object() map[string]any {
	object := map[string]any{"metadata": g.metadata()}
	set := func(apiVersion, kind string, spec any) {
		object["apiVersion"], object["kind"], object["spec"] = apiVersion, kind, spec
		g.builtIn = kind != "Widget"
	}
	switch g.IntN(8) {
	case 0, 1:
		set("v1", "Pod", g.podSpec())
	case 2:
		set("apps/v1", "Deployment", map[string]any{"replicas": int64(3), "template": g.template(), "selector": map[string]any{"matchLabels": g.texts()}})
	case 3:
		set("batch/v1", "CronJob", map[string]any{"schedule": "* * * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": g.template()}}})
	case 4:
		set("v1", "Service", map[string]any{"type": "NodePort", "selector": g.texts(), "ports": g.elements("port")})
	case 5:
		set("v1", "ConfigMap", nil)
		delete(object, "spec")
		object["data"] = g.texts()
	default:
		spec := map[string]any{"any": g.tree(3), "containers": g.elements("containers")}
		if g.chance(50) {
			spec["pod"] = map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": g.podSpec()}
		}
		set("example.com/v1", "Widget", spec)
	}
	return object
}

func (g *generator) metadata() map[string]any {
	return g.some(map[string]any{
		"labels": g.texts(), "annotations": g.texts(), "finalizers": g.elements("finalizers"),
		"ownerReferences": g.elements("ownerReferences"), "name": "n",
	})
}

func (g *generator) template() map[string]any {
	return map[string]any{"metadata": g.metadata(), "spec": g.podSpec()}
}

func (g *generator) podSpec() map[string]any {
	spec := map[string]any{}
	for _, list := range []string{"containers", "initContainers", "volumes", "hostAliases", "imagePullSecrets", "topologySpreadConstraints", "tolerations"} {
		spec[list] = g.elements(list)
	}
	spec["nodeSelector"], spec["securityContext"] = g.texts(), g.tree(1)
	spec["affinity"] = map[string]any{"nodeAffinity": g.tree(2)}
	return g.some(spec)
}

// some leaves out some of the fields.
func (g *generator) some(m map[string]any) map[string]any {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if g.chance(30) {
			delete(m, key)
		}
	}
	return m
}

// elements returns some elements of the list with a name, each another.
func (g *generator) elements(list string) []any {
	result := []any{}
	for _, n := range g.Perm(5)[:g.IntN(4)] {
		result = append(result, g.element(list, n))
	}
	return result
}

// element returns the nth element that a list may have.
func (g *generator) element(list string, n int) any {
	name := string(rune('a' + n))
	switch list {
	case "finalizers":
		return "example.com/" + name
	case "ownerReferences":
		return map[string]any{"uid": name, "apiVersion": "v1", "kind": "Pod", "name": g.text()}
	case "containers", "initContainers":
		container := g.some(map[string]any{
			"name": name, "image": g.text(), "command": []any{"a", g.text()}, "tty": g.chance(50),
			"env": g.elements("env"), "ports": g.elements("containerPort"), "volumeMounts": g.elements("volumeMounts"),
			"resources": map[string]any{"limits": g.texts()}, "securityContext": g.tree(1),
		})
		container["name"] = name
		return container
	case "containerPort", "port":
		return g.port(list, n)
	case "volumeMounts":
		return map[string]any{"mountPath": "/" + name, "name": g.text()}
	case "volumes":
		return map[string]any{"name": name, pick(g, "emptyDir", "configMap", "secret"): g.tree(1)}
	case "hostAliases":
		return map[string]any{"ip": "10.0.0." + name, "hostnames": []any{g.text()}}
	case "topologySpreadConstraints":
		return map[string]any{"topologyKey": "zone" + name, "whenUnsatisfiable": "DoNotSchedule", "maxSkew": int64(g.IntN(3))}
	default:
		return map[string]any{"name": name, "value": g.scalar()}
	}
}

// port returns a port. Whether it has a protocol depends on its number alone, since kyaml
// loses ports with the same number of which one has a protocol.
func (g *generator) port(key string, n int) map[string]any {
	port := map[string]any{key: int64(80 + n/2), "name": g.text()}
	if n < 4 {
		port["protocol"] = []string{"TCP", "UDP"}[n%2]
	}
	return port
}

func (g *generator) texts() map[string]any {
	result := map[string]any{}
	for range g.IntN(4) {
		result[pick(g, "a", "b", "c.d/e", "1", "true", "null")] = g.text()
	}
	return result
}

func (g *generator) text() string {
	return pick(g, "", "a", "b", "1", "1.0", "0x1", "1e3", "true", "yes", "on", "null", "~", "2020-01-01", "a: b", "- a",
		"# a", " a ", "a\nb\n", "{{ a }}", "é", "😀", "<<", "=", "!a", "&a", "*a", "'", "\"", "a # b", "\t", "\u2028", "1_000", ".inf")
}

func (g *generator) scalar() any {
	return pick[any](g, g.text(), int64(g.IntN(3)), int64(1)<<60, 1.5, -0.25, 1e-7, 1e21, 2.0, true, false)
}

// tree returns a map of any kind of value.
func (g *generator) tree(depth int) map[string]any {
	result := map[string]any{}
	for range g.IntN(4) {
		result[pick(g, "a", "b", "c", "d")] = g.value(depth)
	}
	return result
}

func (g *generator) value(depth int) any {
	switch g.IntN(6) {
	case 0:
		if depth > 0 {
			return g.tree(depth - 1)
		}
		return map[string]any{}
	case 1:
		if depth > 0 {
			return []any{g.value(depth - 1), g.value(depth - 1)}
		}
		return []any{}
	case 2:
		return nil
	default:
		return g.scalar()
	}
}
