// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview_test

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

const (
	deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod}}"
	homeless   = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}"
	namespace  = "{apiVersion: v1, kind: Namespace, metadata: {name: prod}}"
	unknown    = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}}"
	definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com}, spec: {group: example.com, scope: Cluster,
    names: {plural: widgets, kind: Widget}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`
)

// TestDerivation completes what a preview leaves out.
func TestDerivation(t *testing.T) {
	tests := []struct {
		name, spec string
		// want is: operation kind resource/subresource namespace/name.
		want string
		// object and oldObject are the namespaces of the objects; - for none.
		object, oldObject string
	}{
		{
			name: "an object alone", spec: "  request: {object: " + deployment + "}",
			want: "CREATE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ prod/web", object: "prod", oldObject: "-",
		},
		{
			name: "both objects", spec: "  request: {object: " + deployment + ", oldObject: " + deployment + "}",
			want: "UPDATE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ prod/web", object: "prod", oldObject: "prod",
		},
		{
			name: "an old object alone", spec: "  request: {oldObject: " + deployment + "}",
			want: "DELETE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ prod/web", object: "-", oldObject: "prod",
		},
		{
			name: "null is absent", spec: "  request: {object: null, oldObject: " + deployment + "}",
			want: "DELETE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ prod/web", object: "-", oldObject: "prod",
		},
		{
			name: "no namespace", spec: "  request: {object: " + homeless + ", oldObject: " + homeless + "}",
			want: "UPDATE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ default/web", object: "default", oldObject: "default",
		},
		{
			name: "namespace of the request", spec: "  request: {namespace: test, object: " + homeless + "}",
			want: "CREATE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ test/web", object: "test", oldObject: "-",
		},
		{
			name: "a Namespace is in itself", spec: "  request: {object: " + namespace + "}",
			want: "CREATE /v1, Kind=Namespace /v1, Resource=namespaces/ prod/prod", object: "", oldObject: "-",
		},
		{
			name: "cluster-scoped", spec: "  request: {object: {apiVersion: v1, kind: Node, metadata: {name: one}}}",
			want: "CREATE /v1, Kind=Node /v1, Resource=nodes/ /one", object: "", oldObject: "-",
		},
		{
			name: "cluster-scoped, with a namespace that means nothing", spec: "  request: {namespace: test, object: {apiVersion: v1, kind: Node, metadata: {name: one, namespace: prod}}}",
			want: "CREATE /v1, Kind=Node /v1, Resource=nodes/ /one", object: "", oldObject: "-",
		},
		{
			name: "no namespace, with the resource said", spec: "  request: {resource: {group: apps, version: v1, resource: deployments}, object: " + homeless + "}",
			want: "CREATE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ default/web", object: "default", oldObject: "-",
		},
		{
			name: "kind of the overlay", spec: "  request: {object: " + unknown + "}\n  cluster:\n  - " + definition,
			want: "CREATE example.com/v1, Kind=Widget example.com/v1, Resource=widgets/ /w", object: "", oldObject: "-",
		},
		{
			name: "resource of an unknown kind", spec: "  request: {resource: {group: example.com, version: v1, resource: widgets}, object: " + unknown + "}",
			want: "CREATE example.com/v1, Kind=Widget example.com/v1, Resource=widgets/ /w", object: "", oldObject: "-",
		},
		{
			name: "an unknown kind of a custom group", spec: "  request: {object: " + unknown + "}",
			want: "CREATE example.com/v1, Kind=Widget example.com/v1, Resource=widgets/ /w", object: "", oldObject: "-",
		},
		{
			name: "subresource", spec: `  request: {operation: UPDATE, resource: {group: apps, version: v1, resource: deployments}, subResource: scale, name: web, namespace: prod,
    object: {apiVersion: autoscaling/v1, kind: Scale}, oldObject: {apiVersion: autoscaling/v1, kind: Scale}}`,
			want: "UPDATE autoscaling/v1, Kind=Scale apps/v1, Resource=deployments/scale prod/web", object: "", oldObject: "",
		},
		{
			name: "no object", spec: "  request: {operation: CONNECT, kind: {version: v1, kind: PodExecOptions}, resource: {version: v1, resource: pods}, subResource: exec, name: p, namespace: prod}",
			want: "CONNECT /v1, Kind=PodExecOptions /v1, Resource=pods/exec prod/p", object: "-", oldObject: "-",
		},
		{
			name: "an object of a collection, as an API server asks about it", spec: "  request: {oldObject: " + deployment + `,
    requestKind: {group: apps, version: v1, kind: Deployment}, requestResource: {group: apps, version: v1, resource: deployments}}`,
			want: "DELETE apps/v1, Kind=Deployment apps/v1, Resource=deployments/ prod/", object: "-", oldObject: "prod",
		},
		{
			name: "a Namespace, as an API server asks about it", spec: "  request: {oldObject: " + namespace + `,
    requestKind: {version: v1, kind: Namespace}, requestResource: {version: v1, resource: namespaces}}`,
			want: "DELETE /v1, Kind=Namespace /v1, Resource=namespaces/ prod/", object: "-", oldObject: "",
		},
		{
			name: "everything is said", spec: "  request: {operation: CREATE, kind: {group: g, version: v1, kind: K}, resource: {group: g, version: v1, resource: ks}, name: web, namespace: prod, object: " + deployment + "}",
			want: "CREATE g/v1, Kind=K g/v1, Resource=ks/ prod/web", object: "prod", oldObject: "-",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.ask(t, test.spec)
			r := f.request
			got := string(r.Operation) + " " + r.Kind.String() + " " + r.Resource.String() + "/" + r.SubResource + " " + r.Namespace + "/" + r.Name
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			object, oldObject := "-", "-"
			if r.Object != nil {
				object = r.Object.GetNamespace()
			}
			if r.OldObject != nil {
				oldObject = r.OldObject.GetNamespace()
			}
			if object != test.object || oldObject != test.oldObject {
				t.Errorf("object in %q and old object in %q, want %q and %q", object, oldObject, test.object, test.oldObject)
			}
			if r.RequestKind != r.Kind || r.RequestResource != r.Resource {
				t.Errorf("original request: got %v and %v, want what is judged", r.RequestKind, r.RequestResource)
			}
		})
	}
}

func TestOriginalRequestUIDAndDryRun(t *testing.T) {
	f := newFixture(t)
	f.ask(t, `  request: {uid: u-1, dryRun: true, options: {kind: CreateOptions}, object: `+deployment+`,
    requestKind: {group: extensions, version: v1beta1, kind: Deployment},
    requestResource: {group: extensions, version: v1beta1, resource: deployments}, requestSubResource: status}`)
	r := f.request
	if r.UID != "u-1" || !r.DryRun || r.Options.GetKind() != "CreateOptions" {
		t.Errorf("got uid %q, dry run %v and options %v", r.UID, r.DryRun, r.Options)
	}
	if r.RequestKind.Group != "extensions" || r.RequestResource.Version != "v1beta1" || r.RequestSubResource != "status" || r.Kind.Group != "apps" {
		t.Errorf("got %v and %v/%s, want the original request", r.RequestKind, r.RequestResource, r.RequestSubResource)
	}
}

func TestUser(t *testing.T) {
	caller := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: "caller", Groups: []string{"system:masters"}})
	f := newFixture(t)
	if _, err := f.create(caller, t, "  request: {object: "+deployment+"}"); err != nil {
		t.Fatal(err)
	}
	if f.request.User.GetName() != "caller" {
		t.Errorf("got user %q, want the caller", f.request.User.GetName())
	}
	if _, err := f.create(caller, t, "  request: {userInfo: {username: jane, groups: [devs]}, object: "+deployment+"}"); err != nil {
		t.Fatal(err)
	}
	if got := f.request.User; got.GetName() != "jane" || len(got.GetGroups()) != 1 || got.GetGroups()[0] != "devs" {
		t.Errorf("got user %+v, want jane and none of the caller's groups", got)
	}
}

func TestUnusableRequests(t *testing.T) {
	tests := []struct {
		name, spec string
		want       []string
	}{
		{"no request", "  storedPolicies: Include", []string{"spec.request: Required value: say which request to judge, an object at least; or with objects, which existing ones"}},
		{"nothing said", "  request: {}", []string{
			"spec.request.object: Required value: needed for CREATE",
			"spec.request.kind: Required value: needed with version and kind where the object has no apiVersion and kind",
		}},
		{"UPDATE without the old object", "  request: {operation: UPDATE, object: " + deployment + "}", []string{"spec.request.oldObject: Required value: needed for UPDATE"}},
		{"UPDATE without the object", "  request: {operation: UPDATE, oldObject: " + deployment + "}", []string{"spec.request.object: Required value: needed for UPDATE"}},
		{"DELETE without the old object", "  request: {operation: DELETE, object: " + deployment + "}", []string{"spec.request.oldObject: Required value: needed for DELETE"}},
		{"unknown operation", "  request: {operation: create, object: " + deployment + "}", []string{
			`spec.request.operation: Unsupported value: "create": supported values: "CREATE", "UPDATE", "DELETE", "CONNECT"`,
		}},
		{"no kind", "  request: {object: {metadata: {name: a}}}", []string{"spec.request.kind: Required value: needed with version and kind where the object has no apiVersion and kind"}},
		{"kind that the cluster lacks", "  request: {object: {apiVersion: apps/v1, kind: Deploymnt, metadata: {name: web}}}", []string{
			"spec.request.resource: Required value: the cluster has no kind apps/v1, Kind=Deploymnt: name the resource, or lay its CustomResourceDefinition over the cluster in spec.cluster",
		}},
		{"object is a list", "  request: {object: [], oldObject: 1, options: a}", []string{
			"spec.request.object: Invalid value: must be a JSON object",
			"spec.request.oldObject: Invalid value: must be a JSON object",
			"spec.request.options: Invalid value: must be a JSON object",
		}},
		{"labels of the wrong type", "  request: {object: {apiVersion: v1, kind: ConfigMap, metadata: {labels: {a: 1}}}}", []string{
			"spec.request.object: Invalid value: metadata.labels: does not fit ObjectMeta: cannot convert int64 to string",
		}},
		{"names that contradict the object", "  request: {name: other, namespace: another, object: " + deployment + "}", []string{
			`spec.request.name: Invalid value: "other": the object has the name "web"`,
			`spec.request.namespace: Invalid value: "another": the object has the namespace "prod"`,
		}},
		{"objects with different names", "  request: {object: " + deployment + ", oldObject: {apiVersion: apps/v1, kind: Deployment, metadata: {name: old, namespace: prod}}}", []string{
			`spec.request.name: Invalid value: "web": the object has the name "old"`,
		}},
		{"half of the original request", "  request: {requestKind: {version: v1, kind: Pod}, object: " + deployment + "}", []string{
			"spec.request: Invalid value: requestResource: version and resource are required beside requestKind",
		}},
		{"everywhere at once", "  storedPolicies: Maybe\n  cluster: [{kind: ConfigMap}]\n  policies: [{kind: Deployment}]\n  request: {operation: DELETE, object: " + unknown + "}", []string{
			"spec.cluster[0].apiVersion: Required value: name the group and version, for example apps/v1",
			"spec.cluster[0].metadata.name: Required value: give the object a name",
			`spec.storedPolicies: Unsupported value: "Maybe": supported values: "Include", "Ignore"`,
			`spec.policies[0].kind: Unsupported value: "Deployment": supported values: "ClusterPolicy", "Policy", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"`,
			"spec.request.oldObject: Required value: needed for DELETE",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wantFaults(t, newFixture(t).faults(t, test.spec), test.want)
		})
	}
}

func wantFaults(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("fault %d is missing:\n%s", i, want[i])
		case i >= len(want):
			t.Errorf("fault %d is not wanted:\n%s", i, got[i])
		case got[i] != want[i]:
			t.Errorf("fault %d: got\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
}
