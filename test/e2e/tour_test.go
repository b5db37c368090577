// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// TestTour does what README.md says under "In a cluster", in one shell, and compares
// with what README.md says that comes of it.
func TestTour(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(t, root, "README.md", "In a cluster", 5)
	t.Cleanup(func() { leave(t) })
	walk(t, tourist(t, root), steps)
}

// TestMutateTour does what docs/mutate.md says under "In a cluster".
func TestMutateTour(t *testing.T) {
	root, err := cluster.Root()
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(t, root, "docs/mutate.md", "In a cluster", 4)
	t.Cleanup(func() {
		must(t, "", "delete", "--ignore-not-found", "pcpol", "database-protection", "owners")
		must(t, "", "delete", "--ignore-not-found", "pod", "cassandra", "cache")
		must(t, "", "delete", "--ignore-not-found", "configmap", "settings")
		must(t, "", "delete", "--ignore-not-found", "rolebinding", "devs")
	})
	walk(t, tourist(t, root), steps)
}

// step is what a reader types, and what the document says that is answered.
type step struct {
	commands string
	output   string // empty when it does not say
	// excerpt says that each line of output is a part of the answer.
	excerpt bool
}

// check compares what a step has written with what the document says.
func (s step) check(t *testing.T, got string) {
	t.Helper()
	got, want := settle(got), settle(s.output)
	if want == "" || got == want || s.excerpt && quotes(want, got) {
		return
	}
	t.Errorf("of\n%s\ngot\n%s\nthe document says\n%s", s.commands, got, want)
}

// walk does all steps in one shell in dir.
func walk(t *testing.T, dir string, steps []step) {
	t.Helper()
	outputs := inShell(t, dir, steps)
	for i, step := range steps {
		if i >= len(outputs) {
			t.Fatalf("the shell ended before this step was over:\n%s", step.commands)
		}
		step.check(t, outputs[i])
	}
}

// section is the text of a document between a heading and the next of its level.
func section(t *testing.T, root, document, heading string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(content), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", document, heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// stepsOf pairs each block of commands with the block of text that follows it, if one
// does before the next commands. Words in between say that the text is an excerpt.
func stepsOf(t *testing.T, root, document, heading string, least int) []step {
	t.Helper()
	text := section(t, root, document, heading)
	var steps []step
	before, end := "", 0
	for _, at := range fenced.FindAllStringSubmatchIndex(text, -1) {
		language, content, words := text[at[2]:at[3]], text[at[4]:at[5]], text[end:at[0]]
		switch {
		case language == "sh":
			steps = append(steps, step{commands: content})
		case language == "text" && before == "sh":
			last := &steps[len(steps)-1]
			last.output, last.excerpt = content, strings.TrimSpace(words) != ""
		}
		before, end = language, at[1]
	}
	if len(steps) < least {
		t.Fatalf("%s has %d blocks of commands under %q: they are not found any more", document, len(steps), heading)
	}
	return steps
}

// tourist makes the folder in which a reader is after make cluster.
func tourist(t *testing.T, root string) string {
	t.Helper()
	developer, err := shared.AddDeveloper(t.Context(), "alice", "devs")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := filepath.Join(dir, ".portcullis-cluster")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	for target, name := range map[string]string{
		filepath.Join(root, "bin"):       filepath.Join(dir, "bin"),
		filepath.Join(root, "artifacts"): filepath.Join(dir, "artifacts"),
		shared.AdminKubeconfig:           filepath.Join(files, "kubeconfig"),
		developer:                        filepath.Join(files, "alice.kubeconfig"),
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inShell does all steps in one shell, which ends at the first command that fails
// where the document does not expect it to, and returns what each has written.
func inShell(t *testing.T, dir string, steps []step) []string {
	t.Helper()
	const end = "--- end of step ---"
	script := "set -o errexit -o pipefail\nexec 2>&1\n"
	for _, step := range steps {
		script += step.commands + "echo '" + end + "'\n"
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", script)
	command.Dir = dir
	command.Env = append(os.Environ(), "HOME="+dir)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("the tour ended early: %v\n%s", err, output)
	}
	parts := strings.SplitAfter(string(output), end+"\n")
	outputs := make([]string, 0, len(parts))
	for _, part := range parts[:len(parts)-1] {
		outputs = append(outputs, strings.TrimSuffix(part, end+"\n"))
	}
	return outputs
}

var (
	age      = regexp.MustCompile(`(?m) +\d+[smh0-9]*$`)
	duration = regexp.MustCompile(`durationMicroseconds: \d+`)
)

// settle leaves out how old things are, and how long they took.
func settle(output string) string {
	return strings.TrimSpace(duration.ReplaceAllString(age.ReplaceAllString(output, " AGE"), "durationMicroseconds: N"))
}

// quotes says whether all lines of an excerpt are in text, in their order.
func quotes(excerpt, text string) bool {
	for line := range strings.Lines(excerpt) {
		_, after, found := strings.Cut(text, strings.TrimSpace(line))
		if !found {
			return false
		}
		text = after
	}
	return true
}

// leave removes what the tour has made.
func leave(t *testing.T) {
	t.Helper()
	for _, what := range [][]string{
		{"pvap", "demo-policy.example.com", "limit.example.com"},
		{"pvapb", "demo-binding-test.example.com", "limit.example.com"},
		{"deployment", "nginx", "web", "many"},
		{"configmap", "limit"},
		{"clusterrolebinding", "devs-preview"},
		{"rolebinding", "devs"},
	} {
		must(t, "", append([]string{"delete", "--ignore-not-found"}, what...)...)
	}
	must(t, "", "label", "namespace", "default", "environment-")
}
