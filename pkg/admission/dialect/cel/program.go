// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
	"github.com/portcullis-dev/portcullis/pkg/admission/verdict"
)

var _ policy.Program = (*program)(nil)

// program judges requests with the expressions of one policy.
type program struct {
	spec           *admissionregistrationv1.ValidatingAdmissionPolicySpec
	conditions     matchconditions.Matcher // nil when there are none
	validator      validating.Validator
	needsNamespace bool
	// unusable, when not nil, is why nothing of the policy may be evaluated.
	unusable error

	tracing *tracing
	// variables is the environment in which the variables of the policy are
	// declared, or nil when it has none. Its evaluators hold it anyway.
	variables *cel.Env
	// faulty says that it did not compile without faults: nothing of it is traced.
	faulty bool
	// explained says that a request has been explained with it.
	explained atomic.Bool
}

// Evaluate implements policy.Program. The order of findings is that in which
// upstream's dispatcher hears them: match conditions, validations, audit
// annotations.
func (p *program) Evaluate(ctx context.Context, in policy.Input) []verdict.Finding {
	if err := ctx.Err(); err != nil {
		return []verdict.Finding{{Kind: verdict.Error, Message: err.Error()}}
	}
	if p.unusable != nil {
		return []verdict.Finding{{Kind: verdict.Misconfigured, Message: p.unusable.Error()}}
	}
	attributes, err := versionedAttributes(in)
	if err != nil {
		return misconfigured(fmt.Errorf("failed to convert object version: %w", err))
	}
	namespace, err := p.namespace(ctx, in)
	if err != nil {
		return misconfigured(err)
	}
	var param runtime.Object
	if in.Param != nil {
		param = in.Param
	}
	authorizer := in.View.Authorizer()
	if findings := p.unmatched(ctx, in, attributes, param, authorizer); findings != nil {
		if in.Explain != nil { // upstream shows match conditions no Namespace, and the resource of the request
			p.explainConditions(ctx, &given{in, attributes.GetResource(), attributes, param, nil, authorizer}, findings)
		}
		return findings
	}
	result := p.validator.Validate(ctx, in.Matched.Resource, attributes, param, namespace,
		celconfig.RuntimeCELCostBudget, authorizer)
	findings := p.findings(&result)
	if in.Explain != nil {
		p.explain(ctx, &given{in, in.Matched.Resource, attributes, param, namespace, authorizer}, &result, findings)
	}
	return findings
}

// unmatched returns what keeps the match conditions from being true: one that is
// false, whatever the others are, or else those that fail. It returns nil when
// the policy is to judge.
func (p *program) unmatched(ctx context.Context, in policy.Input, attributes *admission.VersionedAttributes, param runtime.Object, authorizer authorizer.UnconditionalAuthorizer) []verdict.Finding {
	if p.conditions == nil {
		return nil
	}
	result := p.conditions.Match(ctx, attributes, param, authorizer)
	switch {
	case result.Error != nil:
		return []verdict.Finding{{Kind: verdict.Error, Rule: "matchConditions", Message: result.Error.Error()}}
	case !result.Matches:
		return []verdict.Finding{p.unmet(result.FailedConditionName, in.Explain != nil)}
	}
	return nil
}

// maxQuoted bounds the expression in the message of an unmet condition.
const maxQuoted = 256

// unmet has a message only where someone asks: it decides nothing, and nothing
// else shows it.
func (p *program) unmet(name string, asked bool) verdict.Finding {
	finding := verdict.Finding{Kind: verdict.NotMatched, Rule: "matchConditions"}
	i := slices.IndexFunc(p.spec.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return c.Name == name })
	if i < 0 { // unreachable: the name is that of a condition
		return finding
	}
	finding.Index, finding.Rule = i, fmt.Sprintf("matchConditions[%d]", i)
	finding.Expression = p.spec.MatchConditions[i].Expression
	if !asked {
		return finding
	}
	quoted := finding.Expression
	if len(quoted) > maxQuoted {
		quoted = strings.ToValidUTF8(quoted[:maxQuoted], "") + "..."
	}
	finding.Message = fmt.Sprintf("%s %q is false: %s", finding.Rule, name, strings.Join(strings.Fields(quoted), " "))
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

func (p *program) findings(result *validating.ValidateResult) []verdict.Finding {
	findings := make([]verdict.Finding, 0, len(result.Decisions)+len(result.AuditAnnotations))
	for i := range result.Decisions {
		findings = append(findings, p.decision(i, len(result.Decisions), &result.Decisions[i]))
	}
	for i := range result.AuditAnnotations {
		findings = p.appendAnnotation(findings, i, &result.AuditAnnotations[i])
	}
	return findings
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
		finding.Rule = fmt.Sprintf("validations[%d]", i)
		finding.Expression = p.spec.Validations[i].Expression
	}
	return finding
}

func (p *program) appendAnnotation(findings []verdict.Finding, i int, annotation *validating.PolicyAuditAnnotation) []verdict.Finding {
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
