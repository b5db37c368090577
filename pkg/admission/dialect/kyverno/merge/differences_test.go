// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// difference is where a result differs from kyaml's. Objects and patches are written
// without their outer braces, and an error as its text.
type difference struct{ name, object, patch, kyaml, ours string }

// TestBetterThanUpstream shows all differences from kyaml, which come to light when
// what kyaml does loses what nobody asked it to delete, or writes a directive into the
// object. There are no others: TestAsUpstream would find them.
func TestBetterThanUpstream(t *testing.T) {
	t.Parallel()
	for _, d := range []difference{
		// A port without protocol is a TCP port, and an element of a patch without second key is
		// for the element with the first.
		{
			"a patch without protocol is lost",
			aService + `"spec": {"ports": [{"port": 1, "protocol": "TCP"}]}`, `"spec": {"ports": [{"port": 1, "name": "a"}]}`,
			aService + `"spec": {"ports": [{"port": 1, "protocol": "TCP"}]}`, aService + `"spec": {"ports": [{"port": 1, "protocol": "TCP", "name": "a"}]}`,
		},
		{
			"a patch with the protocol that the port has by default is lost",
			aService + `"spec": {"ports": [{"port": 1}]}`, `"spec": {"ports": [{"port": 1, "protocol": "TCP", "name": "a"}]}`,
			aService + `"spec": {"ports": [{"port": 1}]}`, aService + `"spec": {"ports": [{"port": 1, "protocol": "TCP", "name": "a"}]}`,
		},
		{
			"a patch with another protocol is lost",
			aService + `"spec": {"ports": [{"port": 1}]}`, `"spec": {"ports": [{"port": 1, "protocol": "UDP"}]}`,
			aService + `"spec": {"ports": [{"port": 1}]}`, aService + `"spec": {"ports": [{"port": 1, "protocol": "UDP"}, {"port": 1}]}`,
		},
		{
			"a patch without protocol, of which there are two, is lost",
			aService + `"spec": {"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]}`, `"spec": {"ports": [{"port": 1, "name": "a"}]}`,
			aService + `"spec": {"ports": [{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}]}`, aService + `"spec": {"ports": [{"port": 1, "protocol": "TCP", "name": "a"}, {"port": 1, "protocol": "UDP"}]}`,
		},
		{
			"a patch without second key is lost",
			aPod + `"spec": {"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "b"}]}`, `"spec": {"topologySpreadConstraints": [{"topologyKey": "a", "maxSkew": 1}]}`,
			aPod + `"spec": {"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "b"}]}`, aPod + `"spec": {"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "b", "maxSkew": 1}]}`,
		},
		{
			"an object without second key is not patched",
			aPod + `"spec": {"topologySpreadConstraints": [{"topologyKey": "a"}]}`, `"spec": {"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "b"}]}`,
			aPod + `"spec": {"topologySpreadConstraints": [{"topologyKey": "a"}]}`, aPod + `"spec": {"topologySpreadConstraints": [{"topologyKey": "a", "whenUnsatisfiable": "b"}]}`,
		},
		{
			"a port without protocol, beside one with, is not deleted",
			aService + `"spec": {"ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]}`, `"spec": {"ports": [{"port": 1, "$patch": "delete"}]}`,
			aService + `"spec": {"ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]}`, aService + `"spec": {"ports": [{"port": 2, "protocol": "UDP"}]}`,
		},
		{
			"the same port twice, once without protocol, becomes one",
			aService + `"spec": {"ports": [{"port": 1, "protocol": "UDP"}, {"port": 1}]}`, `"spec": {"type": "ClusterIP"}`,
			aService + `"spec": {"ports": [{"port": 1}], "type": "ClusterIP"}`, aService + `"spec": {"ports": [{"port": 1, "protocol": "UDP"}, {"port": 1}], "type": "ClusterIP"}`,
		},

		// An element without key in the object stays; one in the patch is an error.
		{
			"an element without key deletes those with one",
			aPod + `"spec": {"imagePullSecrets": [{"name": "a"}, {"x": 1}, {"name": "b"}]}`, `"spec": {"nodeName": "n"}`,
			aPod + `"spec": {"imagePullSecrets": [{"x": 1}], "nodeName": "n"}`, aPod + `"spec": {"imagePullSecrets": [{"name": "a"}, {"x": 1}, {"name": "b"}], "nodeName": "n"}`,
		},
		{
			"an element without key in a list that is patched",
			aPod + `"spec": {"imagePullSecrets": [{"name": "a"}, {"x": 1}, {"name": "b"}]}`, `"spec": {"imagePullSecrets": [{"name": "b", "y": 1}]}`,
			aPod + `"spec": {"imagePullSecrets": [{"x": 1}]}`, aPod + `"spec": {"imagePullSecrets": [{"name": "b", "y": 1}, {"name": "a"}, {"x": 1}]}`,
		},
		{
			"a patch without key deletes all",
			aPod + `"spec": {"containers": [{"name": "a"}, {"name": "b"}]}`, `"spec": {"containers": [{"image": "x"}]}`,
			aPod + `"spec": {"containers": []}`, `spec.containers[0]: an element of this list must have "name", which tells the elements apart`,
		},
		{
			"a patch without key adds only the last",
			aPod + `"spec": {}`, `"spec": {"containers": [{"name": "a"}, {"image": "x"}]}`,
			aPod + `"spec": {"containers": [{"image": "x"}]}`, `spec.containers[1]: an element of this list must have "name", which tells the elements apart`,
		},
		{
			"a scalar among maps deletes all",
			aPod + `"spec": {"containers": [{"name": "a"}]}`, `"spec": {"containers": ["a"]}`,
			aPod + `"spec": {"containers": []}`, `spec.containers[0]: an element of this list must be a map, not a scalar`,
		},

		// Of elements with the same key the last is patched, and none is lost.
		{
			"elements with the same key become one",
			aPod + `"spec": {"hostAliases": [{"ip": "1", "hostnames": ["a"]}, {"ip": "1", "hostnames": ["b"]}]}`, `"spec": {"nodeName": "n"}`,
			aPod + `"spec": {"hostAliases": [{"ip": "1", "hostnames": ["b"]}], "nodeName": "n"}`, aPod + `"spec": {"hostAliases": [{"ip": "1", "hostnames": ["a"]}, {"ip": "1", "hostnames": ["b"]}], "nodeName": "n"}`,
		},
		{
			"the patch of elements with the same key is lost",
			aPod + `"spec": {"containers": [{"name": "c", "env": [{"name": "o"}, {"name": "a", "value": "1"}, {"name": "b"}, {"name": "a", "value": "2"}]}]}`, `"spec": {"containers": [{"name": "c", "env": [{"name": "a", "value": "3"}]}]}`,
			aPod + `"spec": {"containers": [{"name": "c", "env": [{"name": "a", "value": "2"}, {"name": "o"}, {"name": "b"}]}]}`, aPod + `"spec": {"containers": [{"name": "c", "env": [{"name": "a", "value": "1"}, {"name": "a", "value": "3"}, {"name": "o"}, {"name": "b"}]}]}`,
		},
		{
			"a patch with the same key twice is lost in part",
			aPod + `"spec": {"containers": [{"name": "a"}]}`, `"spec": {"containers": [{"name": "b", "tty": true, "x": 1}, {"name": "b", "tty": false}, {"name": "a", "y": 1}, {"name": "a", "z": 1}]}`,
			aPod + `"spec": {"containers": [{"name": "b", "tty": true, "x": 1}, {"name": "a", "y": 1}]}`, aPod + `"spec": {"containers": [{"name": "b", "tty": false, "x": 1}, {"name": "a", "y": 1, "z": 1}]}`,
		},

		// Directives are never written into the object.
		{
			"replace a list that is not there",
			aPod + `"spec": {}`, `"spec": {"containers": [{"$patch": "replace"}, {"name": "a"}]}`,
			aPod + `"spec": {"containers": [{"$patch": "replace"}]}`, aPod + `"spec": {"containers": [{"name": "a"}]}`,
		},
		{
			"delete a list that is not there",
			aPod + `"spec": {}`, `"spec": {"containers": [{"$patch": "delete"}]}`,
			aPod + `"spec": {"containers": [{"$patch": "delete"}]}`, aPod + `"spec": {}`,
		},
		{
			"replace a list without keys",
			aPod + `"spec": {"tolerations": [{"key": "a"}]}`, `"spec": {"tolerations": [{"$patch": "replace"}, {"key": "b"}]}`,
			aPod + `"spec": {"tolerations": [{"$patch": "replace"}, {"key": "b"}]}`, aPod + `"spec": {"tolerations": [{"key": "b"}]}`,
		},
		{
			"delete a list without keys",
			aPod + `"spec": {"tolerations": [{"key": "a"}]}`, `"spec": {"tolerations": [{"$patch": "delete"}]}`,
			aPod + `"spec": {"tolerations": [{"$patch": "delete"}]}`, aPod + `"spec": {}`,
		},
		{
			"merge a list without keys",
			aPod + `"spec": {"tolerations": [{"key": "a"}]}`, `"spec": {"tolerations": [{"$patch": "merge"}, {"key": "b"}]}`,
			aPod + `"spec": {"tolerations": [{"$patch": "merge"}, {"key": "b"}]}`, `spec.tolerations: the elements of this list have no key to merge them by; without a directive the list is replaced`,
		},
		{
			"an unknown directive in a new map",
			aPod + `"a": 1`, `"b": {"$patch": "drop"}`,
			aPod + `"a": 1, "b": {"$patch": "drop"}`, `b.$patch: "drop" is no directive; there are merge, replace and delete`,
		},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			object, patch := decode(t, d.object), decode(t, d.patch)
			got, err := upstream(object, patch)
			check(t, "kyaml", got, err, decode(t, d.kyaml))
			got, err = Merge(object, patch)
			if err != nil {
				if diff := cmp.Diff(d.ours, err.Error()); diff != "" {
					t.Errorf("the error (-want +got)\n%s", diff)
				}
				return
			}
			check(t, "ours", got, err, decode(t, d.ours))
		})
	}
}
