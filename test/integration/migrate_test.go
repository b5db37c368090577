// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/test/integration/harness"
)

const migrationPage = "../../docs/migrate-from-kyverno.md"

// refusedRow is a row of the table of refusals: what is written, and the answer.
var refusedRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `(spec\\.[^`]+)` \\|")

// TestMigrationRefusals writes what docs/migrate-from-kyverno.md says is refused, and
// compares with what it says that is answered.
func TestMigrationRefusals(t *testing.T) {
	a := newAPI(t, withoutConditions())
	rows := refusedRow.FindAllStringSubmatch(sectionOf(t, "What is refused"), -1)
	if len(rows) < 15 {
		t.Fatalf("the page has %d rows: they are not found any more", len(rows))
	}
	for _, row := range rows {
		t.Run(row[1], func(t *testing.T) {
			_, err := a.clusterPolicies().Create(t.Context(), policyWith(t, row[1]), metav1.CreateOptions{})
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Details == nil {
				t.Fatalf("got error %v, want a refusal with details", err)
			}
			var said []string
			for _, cause := range status.Status().Details.Causes {
				said = append(said, cause.Field+": "+cause.Message)
			}
			if got := strings.Join(said, "\n"); got != row[2] {
				t.Errorf("answered is\n%s\nthe page says\n%s", got, row[2])
			}
		})
	}
}

// policyWith is a policy that is right, but for the part of its rule, or of its spec,
// that is given.
func policyWith(t *testing.T, part string) *v1alpha1.ClusterPolicy {
	t.Helper()
	rule := map[string]any{}
	decodeInto(t, aboutPods+patchPods+"name: r\n", &rule)
	spec := map[string]any{"rules": []any{rule}}
	given := map[string]any{}
	decodeInto(t, part, &given)
	if settings, ok := given["spec"].(map[string]any); ok {
		maps.Copy(spec, settings)
	} else {
		maps.Copy(rule, given)
	}
	policy := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	decodeInto(t, string(encode(t, spec)), &policy.Spec)
	return policy
}

func decodeInto(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// sectionOf is the text of the page between a heading and the next of its level.
func sectionOf(t *testing.T, heading string) string {
	t.Helper()
	content, err := os.ReadFile(migrationPage)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(content), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("the page has no section %q", heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

// commands is a block of what a reader types, with what is answered if the page says.
var commands = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?")

// TestMigrationCommands does what docs/migrate-from-kyverno.md has a reader try, in one
// shell, and compares with what it says that comes of it.
func TestMigrationCommands(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed")
	}
	blocks := commands.FindAllStringSubmatch(sectionOf(t, "Try your policies without the cluster"), -1)
	if len(blocks) < 4 {
		t.Fatalf("the page has %d blocks of commands: they are not found any more", len(blocks))
	}
	dir := t.TempDir()
	runBlock(t, dir, blocks[0][1]) // it makes the objects, with which the server starts
	a := newAPI(t, harness.WithObjects(filepath.Join(dir, ".portcullis", "my-objects")))
	if err := os.Symlink(a.Kubeconfig, filepath.Join(dir, ".portcullis", "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	var script, want strings.Builder
	for _, block := range blocks[1:] {
		script.WriteString(block[1])
		want.WriteString(block[2])
	}
	if got := runBlock(t, dir, script.String()); got != want.String() {
		t.Errorf("answered is\n%s\nthe page says\n%s", got, want.String())
	}
}

// runBlock runs commands in one shell, which ends at the first that fails, and returns
// what they write.
func runBlock(t *testing.T, dir, script string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-c", "set -o errexit -o pipefail\nexec 2>&1\n"+script)
	command.Dir, command.Env = dir, append(os.Environ(), "HOME="+dir)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("the commands ended early: %v\n%s", err, out)
	}
	return string(out)
}

// TestMigrationRowsAreComplete: a row that has no answer in the form that the test looks
// for would not be tested.
func TestMigrationRowsAreComplete(t *testing.T) {
	text := sectionOf(t, "What is refused")
	rows, tested := strings.Count(text, "\n| `"), len(refusedRow.FindAllString(text, -1))
	if rows != tested {
		t.Errorf("the page has %d rows, of which %d are tested", rows, tested)
	}
}
