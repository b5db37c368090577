// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

// program judges requests with the expressions of one policy. It is immutable but
// for what it remembers, and safe for concurrent use.
type program struct {
	spec        *admissionregistrationv1.ValidatingAdmissionPolicySpec
	variables   definitions
	conditions  []clause
	validations []clause
	messages    []clause // of the validations, in their order
	annotations []clause
	// passed are the findings where no validation objects. They are shared and never
	// modified.
	passed         []verdict.Finding
	needsNamespace bool
	// failure, when not nil, is why the policy could not be compiled at all.
	failure error
	// unusable, when not nil, is why nothing of the policy may be evaluated.
	unusable error

	fits    fits
	tracing *tracing
	// faulty says that it did not compile without faults: nothing of it is traced.
	faulty bool
	// explained says that a request has been explained with it.
	explained atomic.Bool
}

// evaluate returns findings in the order in which upstream's dispatcher hears them:
// match conditions, validations, audit annotations.
func (p *program) evaluate(ctx context.Context, in policy.Input) []verdict.Finding {
	if p.unusable != nil {
		return []verdict.Finding{{Kind: verdict.Misconfigured, Message: p.unusable.Error()}}
	}
	shared, err := sharedOf(in.Request)
	if err != nil {
		return misconfigured(err)
	}
	version, err := shared.version(in)
	if err != nil {
		return misconfigured(fmt.Errorf("failed to convert object version: %w", err))
	}
	namespace, err := p.namespace(ctx, in)
	if err != nil {
		return misconfigured(err)
	}
	param := shared.param(in.Param)
	frame := version.take(in.Matched.Resource)
	sizes := frame.sizes.Max(param.sizes)
	if namespace != nil {
		sizes = sizes.Max(shared.namespaceSizes(namespace))
	}
	e := frame.evaluate(ctx, p, namespace, param, in.View.Authorizer())
	g := &given{in: in, resource: in.Matched.Resource, attributes: version.attributes, namespace: namespace, authorizer: e.authorizer}
	if in.Param != nil {
		g.param = in.Param
	}
	if in.Explain != nil {
		e.clock = p.tracing.clock
	}
	fit := p.fit(sizes)
	e.brief = fit&brief != 0
	findings := p.judge(ctx, e, fit, g)
	version.put(frame) // not after a panic
	return findings
}

// judge returns what is found, with traces where they are asked for.
func (p *program) judge(ctx context.Context, e *evaluation, fit parts, g *given) []verdict.Finding {
	explain := g.in.Explain != nil
	if p.failure == nil {
		if findings := p.unmatchedFindings(ctx, e, fit, explain); findings != nil {
			if explain { // upstream shows match conditions no Namespace, and the resource of the request
				g.resource, g.namespace = g.attributes.GetResource(), nil
				p.explainConditions(ctx, g, findings)
			}
			return findings
		}
	}
	result := p.validate(ctx, e, fit)
	findings := p.findings(&result, explain)
	if explain {
		p.explain(ctx, g, &result.ValidateResult, findings)
	}
	return findings
}

// unmatchedFindings returns what keeps the match conditions from being true, or nil
// when the policy is to judge.
func (p *program) unmatchedFindings(ctx context.Context, e *evaluation, fit parts, asked bool) []verdict.Finding {
	unmet, err := p.unmatched(ctx, e, !fit.has(conditions))
	switch {
	case err != nil:
		return []verdict.Finding{{Kind: verdict.Error, Rule: "matchConditions", Message: err.Error()}}
	case unmet >= 0:
		return []verdict.Finding{p.unmet(unmet, asked)}
	}
	return nil
}

// maxQuoted bounds the expression in the message of an unmet condition.
const maxQuoted = 256

// unmet has a message only where someone asks: it decides nothing, and nothing
// else shows it.
func (p *program) unmet(i int, asked bool) verdict.Finding {
	condition := &p.spec.MatchConditions[i]
	finding := verdict.Finding{
		Kind: verdict.NotMatched, Index: i, Rule: fmt.Sprintf("matchConditions[%d]", i), Expression: condition.Expression,
	}
	if !asked {
		return finding
	}
	quoted := finding.Expression
	if len(quoted) > maxQuoted {
		quoted = strings.ToValidUTF8(quoted[:maxQuoted], "") + "..."
	}
	finding.Message = fmt.Sprintf("%s %q is false: %s", finding.Rule, condition.Name, strings.Join(strings.Fields(quoted), " "))
	return finding
}

// namespace returns the Namespace of the request for namespaceObject, and nil
// for cluster-scoped objects, Namespaces among them. It asks the view only when
// an expression may look at it, so that a Namespace that the view does not
// know fails only the policies that need it.
func (p *program) namespace(ctx context.Context, in policy.Input) (*corev1.Namespace, error) {
	req := in.Request
	if !p.needsNamespace || req.Namespace == "" || isNamespace(req) {
		return nil, nil //nolint:nilnil // there is no Namespace, and that is no error
	}
	return in.View.Namespace(ctx, req.Namespace)
}

func isNamespace(req *request.Request) bool {
	kind := req.RequestKind
	return kind.Group == "" && kind.Version == "v1" && kind.Kind == "Namespace"
}

// findings returns those of a result. Unless they are needed to write to, they may be
// shared.
func (p *program) findings(result *result, own bool) []verdict.Finding {
	if !own && len(result.AuditAnnotations) == 0 && p.admitsAll(result.Decisions) {
		return p.passed
	}
	findings := make([]verdict.Finding, 0, len(result.Decisions)+len(result.AuditAnnotations))
	for i := range result.Decisions {
		findings = append(findings, p.decision(i, len(result.Decisions), &result.Decisions[i]))
	}
	for i := range result.AuditAnnotations {
		findings = p.appendAnnotation(findings, i, result)
	}
	return findings
}

func (p *program) admitsAll(decisions []validating.PolicyDecision) bool {
	return len(decisions) == len(p.passed) && !slices.ContainsFunc(decisions, func(d validating.PolicyDecision) bool {
		return d.Evaluation != validating.EvalAdmit
	})
}

func (p *program) decision(i, of int, decision *validating.PolicyDecision) verdict.Finding {
	finding := verdict.Finding{Kind: verdict.Undecided, Index: i, Message: decision.Message, Reason: decision.Reason}
	switch decision.Evaluation {
	case validating.EvalAdmit:
		finding.Kind = verdict.Pass
	case validating.EvalDeny:
		finding.Kind = verdict.Fail
	case validating.EvalError:
		finding.Kind = verdict.Error
	}
	// An error of the whole policy comes alone, whatever the number of
	// validations is.
	if of == len(p.spec.Validations) {
		finding.Rule, finding.Expression = p.passed[i].Rule, p.passed[i].Expression
	}
	return finding
}

func (p *program) appendAnnotation(findings []verdict.Finding, i int, result *result) []verdict.Finding {
	annotation := &result.AuditAnnotations[i]
	finding := verdict.Finding{Index: i, Rule: fmt.Sprintf("auditAnnotations[%d]", i)}
	if i < len(p.spec.AuditAnnotations) {
		finding.Expression = p.spec.AuditAnnotations[i].ValueExpression
	}
	switch annotation.Action {
	case validating.AuditAnnotationActionExclude:
		return findings
	case validating.AuditAnnotationActionPublish:
		finding.Kind, finding.Key, finding.Value = verdict.Annotation, annotation.Key, annotation.Value
	case validating.AuditAnnotationActionError:
		finding.Kind, finding.Message = verdict.Misconfigured, annotation.Error
		if slices.Contains(result.refused, i) {
			finding.Kind = verdict.Refused
		}
	default:
		finding.Kind, finding.Message = verdict.Misconfigured, fmt.Sprintf("unsupported AuditAnnotation Action: %s", annotation.Action)
	}
	return append(findings, finding)
}

// misconfigured says that the request cannot be judged through this binding, in
// upstream's words.
func misconfigured(err error) []verdict.Finding {
	return []verdict.Finding{{Kind: verdict.Misconfigured, Message: fmt.Sprintf("failed to configure binding: %s", err)}}
}

// mentions reports whether any expression of spec contains word; it errs on the
// side of true. Match conditions do not count: upstream shows them no Namespace.
func mentions(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec, word string) bool {
	for i := range spec.Variables {
		if strings.Contains(spec.Variables[i].Expression, word) {
			return true
		}
	}
	for i := range spec.Validations {
		if strings.Contains(spec.Validations[i].Expression, word) || strings.Contains(spec.Validations[i].MessageExpression, word) {
			return true
		}
	}
	for i := range spec.AuditAnnotations {
		if strings.Contains(spec.AuditAnnotations[i].ValueExpression, word) {
			return true
		}
	}
	return false
}
