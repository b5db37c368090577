// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/image"
)

const digest = "sha256:dead07b4d8ed7e29e98de0f4504d87e8880d4347859d839686a31da35a3b532f"

func TestParse(t *testing.T) {
	for _, test := range []struct {
		text string
		want image.Image
	}{
		{"nginx", image.Image{
			Registry: "docker.io", Name: "nginx", Path: "nginx", Tag: "latest",
			Reference: "docker.io/nginx:latest", ReferenceWithTag: "docker.io/nginx:latest",
		}},
		{"team/app:v1.2", image.Image{
			Registry: "docker.io", Name: "app", Path: "team/app", Tag: "v1.2",
			Reference: "docker.io/team/app:v1.2", ReferenceWithTag: "docker.io/team/app:v1.2",
		}},
		{"localhost/a", image.Image{
			Registry: "localhost", Name: "a", Path: "a", Tag: "latest",
			Reference: "localhost/a:latest", ReferenceWithTag: "localhost/a:latest",
		}},
		{"reg.io:5000/x/y/z@" + digest, image.Image{
			Registry: "reg.io:5000", Name: "z", Path: "x/y/z", Digest: digest,
			Reference: "reg.io:5000/x/y/z@" + digest, ReferenceWithTag: "reg.io:5000/x/y/z:",
		}},
		{"reg.io/x:1@" + digest, image.Image{
			Registry: "reg.io", Name: "x", Path: "x", Tag: "1", Digest: digest,
			Reference: "reg.io/x@" + digest, ReferenceWithTag: "reg.io/x:1",
		}},
		{"Host/x", image.Image{
			Registry: "Host", Name: "x", Path: "x", Tag: "latest",
			Reference: "Host/x:latest", ReferenceWithTag: "Host/x:latest",
		}},
		{"my_host.io/x", image.Image{
			Registry: "my_host.io", Name: "x", Path: "x", Tag: "latest",
			Reference: "my_host.io/x:latest", ReferenceWithTag: "my_host.io/x:latest",
		}},
		{"my_host/x", image.Image{
			Registry: "docker.io", Name: "x", Path: "my_host/x", Tag: "latest",
			Reference: "docker.io/my_host/x:latest", ReferenceWithTag: "docker.io/my_host/x:latest",
		}},
		{"app:5000", image.Image{
			Registry: "docker.io", Name: "app", Path: "app", Tag: "5000",
			Reference: "docker.io/app:5000", ReferenceWithTag: "docker.io/app:5000",
		}},
	} {
		t.Run(test.text, func(t *testing.T) {
			got, err := image.Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "++", "a b", "x:", "x@sha256:12", "App", "a//b", "x@md5:d41d8cd98f00b204e9800998ecf8427e", strings.Repeat("a", 5000)} {
		if got, err := image.Parse(text); err == nil {
			t.Errorf("%.20q is taken as %+v", text, got)
		}
	}
}

func TestFields(t *testing.T) {
	parsed, err := image.Parse("reg.io/x@" + digest)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"registry": "reg.io", "name": "x", "path": "x", "digest": digest,
		"reference": "reg.io/x@" + digest, "referenceWithTag": "reg.io/x:",
	}
	if diff := cmp.Diff(want, parsed.Fields()); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"nginx", "reg.io:5000/x/y:1@" + digest, "my_host.io/x", "", "/", "a/", "localhost/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := image.Parse(text)
		if err != nil {
			return
		}
		again, err := image.Parse(parsed.Reference)
		if err != nil {
			t.Fatalf("%q, the reference of %q: %v", parsed.Reference, text, err)
		}
		if again.Reference != parsed.Reference {
			t.Errorf("%q becomes %q, then %q", text, parsed.Reference, again.Reference)
		}
	})
}
