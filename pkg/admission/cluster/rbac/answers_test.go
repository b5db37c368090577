// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac_test

import (
	"os"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/manifest"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
)

// recorded is a line of testdata/answers.yaml, as hack/rbacanswers writes it.
type recorded struct {
	User        string   `json:"user"`
	Groups      []string `json:"groups"`
	Verb        string   `json:"verb"`
	Group       string   `json:"group"`
	Resource    string   `json:"resource"`
	Subresource string   `json:"subresource"`
	Namespace   string   `json:"namespace"`
	Name        string   `json:"name"`
	Path        string   `json:"path"`
	Allowed     bool     `json:"allowed"`
	Denied      bool     `json:"denied"`
	Error       string   `json:"error"`
	Reasons     []string `json:"reasons"`
}

func (r recorded) attributes() authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: r.User, Groups: r.Groups}, Verb: r.Verb, APIGroup: r.Group, APIVersion: "*",
		Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
		ResourceRequest: r.Path == "", Path: r.Path,
	}
}

// TestAnswers compares the evaluator with kube-apiserver 1.36.3, which was asked
// by hack/rbacanswers after testdata/objects.yaml had been created there. Where
// several bindings allow, kube-apiserver names any of them.
func TestAnswers(t *testing.T) {
	var questions []recorded
	readYAML(t, "testdata/answers.yaml", &questions)
	if len(questions) < 500 {
		t.Fatalf("got %d recorded answers, want all", len(questions))
	}
	data, err := os.ReadFile("testdata/objects.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	view, err := offline.New(objects)
	if err != nil {
		t.Fatal(err)
	}
	evaluator := view.Authorizer()
	allowed := 0
	for i, asked := range questions {
		if asked.Denied || asked.Error != "" {
			t.Fatalf("line %d: RBAC neither denies nor fails: %+v", i+2, asked)
		}
		decision, reason, err := evaluator.Authorize(t.Context(), asked.attributes())
		want := authorizer.DecisionNoOpinion
		if asked.Allowed {
			want = authorizer.DecisionAllow
			allowed++
		}
		if decision != want || err != nil {
			t.Errorf("line %d: got %v, %q, %v, want %v: %+v", i+2, decision, reason, err, want, asked)
		}
		if !slices.Contains(asked.Reasons, reason) {
			t.Errorf("line %d: got reason %q, want one of %q", i+2, reason, asked.Reasons)
		}
	}
	t.Logf("%d answers, %d of them allow", len(questions), allowed)
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatal(err)
	}
}
