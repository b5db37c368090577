// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/audit"
	auditpolicy "k8s.io/apiserver/pkg/audit/policy"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// AuditOptions say which requests the server tells of, and in which file.
type AuditOptions struct {
	// PolicyFile holds a Policy of audit.k8s.io/v1: which requests, in which
	// detail. Without one there is no audit log.
	PolicyFile string
	// LogPath is the file to append events to, a line each; - is the standard
	// output.
	LogPath string
	// MaxAge is how many days files are kept that the log was rotated into, and
	// MaxBackups how many of them; 0 keeps all.
	MaxAge, MaxBackups int
	// MaxSize is the size in megabytes at which the log is rotated; 0 never does.
	MaxSize int
	// Format is json or legacy.
	Format string
}

// NewAuditOptions returns the defaults, which are those of kube-apiserver: nothing
// is told of.
func NewAuditOptions() AuditOptions {
	defaults := options.NewAuditOptions().LogOptions
	return AuditOptions{MaxAge: defaults.MaxAge, MaxBackups: defaults.MaxBackups, MaxSize: defaults.MaxSize, Format: defaults.Format}
}

// Validate returns everything that is wrong with the options, each with the name
// of its flag. It does not read the file.
func (o *AuditOptions) Validate() []error {
	var errs []error
	switch {
	case o.LogPath != "" && o.PolicyFile == "":
		errs = append(errs, errors.New("--audit-log-path is given without --audit-policy-file, which says what to log: name a file with a Policy of audit.k8s.io/v1"))
	case o.PolicyFile != "" && o.LogPath == "":
		errs = append(errs, errors.New("--audit-policy-file is given without --audit-log-path, which says where to log: name a file, or - for the standard output"))
	}
	for _, number := range []struct {
		flag  string
		value int
	}{{"--audit-log-maxage", o.MaxAge}, {"--audit-log-maxbackup", o.MaxBackups}, {"--audit-log-maxsize", o.MaxSize}} {
		if number.value < 0 {
			errs = append(errs, fmt.Errorf("%s %d is negative: use 0 for no limit", number.flag, number.value))
		}
	}
	if !slices.Contains(auditlog.AllowedFormats, o.Format) {
		errs = append(errs, fmt.Errorf("--audit-log-format %q is not known: use one of %s", o.Format, strings.Join(auditlog.AllowedFormats, ", ")))
	}
	return errs
}

// Audit tells of requests.
type Audit struct {
	rules   audit.PolicyRuleEvaluator
	backend audit.Backend
}

// LoadAudit reads the audit policy and makes sure that the log can be written. It
// returns nil when there is nothing to tell. Unlike kube-apiserver it refuses a
// policy with fields that it does not know: what they were to keep out of the log
// would be in it.
func LoadAudit(o AuditOptions) (*Audit, error) {
	if errs := o.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if o.PolicyFile == "" {
		return nil, nil //nolint:nilnil // no audit log, and that is no error
	}
	if err := checkAuditPolicy(o.PolicyFile); err != nil {
		return nil, fmt.Errorf("--audit-policy-file %s: %w", o.PolicyFile, err)
	}
	upstream := options.NewAuditOptions()
	upstream.PolicyFile = o.PolicyFile
	upstream.LogOptions.Path = o.LogPath
	upstream.LogOptions.MaxAge, upstream.LogOptions.MaxBackups, upstream.LogOptions.MaxSize = o.MaxAge, o.MaxBackups, o.MaxSize
	upstream.LogOptions.Format = o.Format
	var config genericapiserver.Config
	if err := upstream.ApplyTo(&config); err != nil {
		return nil, fmt.Errorf("--audit-log-path %s: %w", o.LogPath, err)
	}
	return &Audit{rules: config.AuditPolicyRuleEvaluator, backend: config.AuditBackend}, nil
}

func checkAuditPolicy(file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	strict := serializer.NewCodecFactory(audit.Scheme, serializer.EnableStrict).UniversalDecoder()
	if _, _, err := strict.Decode(content, nil, nil); err != nil {
		return err
	}
	_, err = auditpolicy.LoadPolicyFromBytes(content)
	return err
}

// SetAudit makes the server tell of its requests; nil does not. The audit policy
// decides what is told of the API. The review doors do not take the way of objects:
// at every level, their events have neither the review nor the answer in them, but the
// audit annotations of the policies. Those of previews have no such annotations, since
// a preview has no effect; at the levels Request and RequestResponse they have the
// whole preview.
func (c *Config) SetAudit(audit *Audit) {
	if audit == nil {
		return
	}
	c.Generic.AuditPolicyRuleEvaluator, c.Generic.AuditBackend = audit.rules, audit.backend
}
