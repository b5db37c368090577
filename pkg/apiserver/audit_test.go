// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoadAudit(t *testing.T) {
	const rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	tests := []struct {
		name    string
		policy  string // none when empty
		options func(dir string, o *AuditOptions)
		want    string // part of the error
		none    bool
	}{
		{name: "nothing", options: func(_ string, o *AuditOptions) { o.PolicyFile, o.LogPath = "", "" }, none: true},
		{name: "good", policy: rules},
		{name: "in a new folder", policy: rules, options: func(dir string, o *AuditOptions) { o.LogPath = filepath.Join(dir, "new", "audit.log") }},
		{name: "no rotation", policy: rules, options: func(_ string, o *AuditOptions) { o.MaxSize = 0 }},
		{name: "no file", want: "no such file or directory"},
		{name: "no YAML", policy: "{", want: "--audit-policy-file"},
		{name: "another kind", policy: "apiVersion: v1\nkind: Pod\n", want: `no kind "Pod" is registered for version "v1"`},
		{name: "no rules", policy: "apiVersion: audit.k8s.io/v1\nkind: Policy\n", want: "0 rules"},
		{name: "an unknown level", policy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]\n", want: `rules[0].level: Unsupported value: "All"`},
		{name: "a misspelt field", policy: "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Request, verb: [get]}]\n", want: `unknown field "rules[0].verb"`},
		{name: "no place for the log", policy: rules, options: func(dir string, o *AuditOptions) { o.LogPath = dir }, want: "--audit-log-path"},
		{name: "invalid options", policy: rules, options: func(_ string, o *AuditOptions) { o.Format = "xml" }, want: "--audit-log-format"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			options := NewAuditOptions()
			options.PolicyFile, options.LogPath = filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
			if test.policy != "" {
				if err := os.WriteFile(options.PolicyFile, []byte(test.policy), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if test.options != nil {
				test.options(dir, &options)
			}
			audit, err := LoadAudit(options)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got error %v, want one with %s", err, test.want)
				}
				return
			}
			if err != nil || (audit == nil) != test.none {
				t.Fatalf("got %+v and %v", audit, err)
			}
			if audit != nil && (audit.rules == nil || audit.backend == nil) {
				t.Errorf("got %+v, want rules and a backend", audit)
			}
		})
	}
}
