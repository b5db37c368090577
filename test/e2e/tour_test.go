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
	content, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := stepsOf(t, section(t, string(content), "In a cluster"))
	t.Cleanup(func() { leave(t) })
	outputs := inShell(t, tourist(t, root), steps)
	for i, step := range steps {
		if i >= len(outputs) {
			t.Fatalf("the shell ended before this step was over:\n%s", step.commands)
		}
		if got, want := settle(outputs[i]), settle(step.output); want != "" && got != want {
			t.Errorf("of\n%s\ngot\n%s\nREADME.md says\n%s", step.commands, got, want)
		}
	}
}

// step is what a reader types, and what README.md says that is answered.
type step struct {
	commands string
	output   string // empty when it does not say
}

// section is the text between a heading and the next of its level.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(document, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("README.md has no section %q", heading)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return text
}

var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// stepsOf pairs each block of commands with the block of text that follows it, if one
// does before the next commands.
func stepsOf(t *testing.T, text string) []step {
	t.Helper()
	var steps []step
	before := ""
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		language, content := block[1], block[2]
		switch {
		case language == "sh":
			steps = append(steps, step{commands: content})
		case language == "text" && before == "sh":
			steps[len(steps)-1].output = content
		}
		before = language
	}
	if len(steps) < 5 {
		t.Fatalf("README.md has %d blocks of commands: they are not found any more", len(steps))
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
// where README.md does not expect it to, and returns what each has written.
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

// settle leaves out how old things are.
func settle(output string) string {
	return regexp.MustCompile(`(?m) +\d+[smh0-9]*$`).ReplaceAllString(output, " AGE")
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
