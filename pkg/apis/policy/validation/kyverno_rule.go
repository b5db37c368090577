// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"bytes"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// maxForEachDepth bounds how deep loops lie within each other.
const maxForEachDepth = 10

const (
	noTargets     = "rules with targets (mutate existing) are not supported yet"
	onlyMutations = "only mutate rules are run here"
	// elsewhere is what to do with other rules, which may stand beside mutate rules.
	elsewhere = "move the rule to a policy of its own, and leave that to Kyverno"
	onePatch  = "exactly one of patchStrategicMerge, patchesJson6902 and foreach"
)

func (v *ruleValidator) validateRule(rule *kyvernov1.Rule, path *field.Path) field.ErrorList {
	errs := v.validateMatches(rule, path)
	errs = append(errs, v.validateContext(rule.Context, path.Child("context"))...)
	errs = append(errs, validatePreconditions(rule.Preconditions, true, path.Child("preconditions"))...)
	others := refuseOtherActions(rule, path)
	errs = append(errs, others...)
	mutation, mutatePath := rule.Mutate, path.Child("mutate")
	if mutation == nil || isEmptyMutation(mutation) {
		if len(others) > 0 {
			return errs
		}
		return append(errs, field.Required(mutatePath, onlyMutations+": say what the rule changes"))
	}
	if len(mutation.Targets) > 0 {
		errs = append(errs, field.Forbidden(mutatePath.Child("targets"), noTargets+": "+elsewhere))
	}
	if existing := mutation.MutateExistingOnPolicyUpdate; existing != nil && *existing {
		errs = append(errs, field.Forbidden(mutatePath.Child("mutateExistingOnPolicyUpdate"), noTargets+": remove the field"))
	}
	errs = append(errs, validatePatches(mutation.PatchStrategicMerge, mutation.PatchesJSON6902, len(mutation.ForEach) > 0, mutatePath)...)
	return append(errs, v.validateForEach(mutation.ForEach, 1, mutatePath.Child("foreach"))...)
}

func isEmptyMutation(m *kyvernov1.Mutation) bool {
	return m.PatchStrategicMerge == nil && m.PatchesJSON6902 == "" && len(m.ForEach) == 0 &&
		len(m.Targets) == 0 && m.MutateExistingOnPolicyUpdate == nil
}

// refuseOtherActions refuses what makes a rule other than a mutate rule, unless it is
// empty: Kyverno ignores that, too.
func refuseOtherActions(rule *kyvernov1.Rule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(name, advice string, values ...apiextensionsv1.JSON) {
		for _, value := range values {
			if !isEmptyJSON(value.Raw) {
				errs = append(errs, field.Forbidden(path.Child(name), advice))
				return
			}
		}
	}
	refuse("validate", onlyMutations+": "+elsewhere+", or write a ValidatingAdmissionPolicy", valueOf(rule.Validate))
	refuse("generate", onlyMutations+": "+elsewhere, valueOf(rule.Generate))
	refuse("verifyImages", onlyMutations+": "+elsewhere, rule.VerifyImages...)
	refuse("imageExtractors", "it is for rules that verify images, and "+onlyMutations+": remove it", valueOf(rule.ImageExtractors))
	refuse("celPreconditions", "it is for validate rules, and "+onlyMutations+
		": write preconditions, or spec.webhookConfiguration.matchConditions", rule.CELPreconditions...)
	return errs
}

func valueOf(value *apiextensionsv1.JSON) apiextensionsv1.JSON {
	if value == nil {
		return apiextensionsv1.JSON{}
	}
	return *value
}

func isEmptyJSON(raw []byte) bool {
	switch string(bytes.Join(bytes.Fields(raw), nil)) {
	case "", "null", "{}", "[]":
		return true
	default:
		return false
	}
}

// validatePatches wants exactly one way to change an object.
func validatePatches(merge *apiextensionsv1.JSON, patches string, loops bool, path *field.Path) field.ErrorList {
	var given []string
	if merge != nil {
		given = append(given, "patchStrategicMerge")
	}
	if patches != "" {
		given = append(given, "patchesJson6902")
	}
	if loops {
		given = append(given, "foreach")
	}
	if len(given) == 0 {
		return field.ErrorList{field.Required(path, onePatch+" is needed")}
	}
	var errs field.ErrorList
	for _, name := range given[1:] {
		errs = append(errs, field.Forbidden(path.Child(name), fmt.Sprintf("%s is given already, and %s is allowed", given[0], onePatch)))
	}
	return errs
}

func (v *ruleValidator) validateForEach(entries []kyvernov1.ForEachMutation, depth int, path *field.Path) field.ErrorList {
	if depth > maxForEachDepth {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("loops may not lie deeper than %d in each other", maxForEachDepth))}
	}
	var errs field.ErrorList
	for i := range entries {
		errs = append(errs, v.validateForEachEntry(&entries[i], depth, path.Index(i))...)
	}
	return errs
}

func (v *ruleValidator) validateForEachEntry(entry *kyvernov1.ForEachMutation, depth int, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.TrimSpace(entry.List) == "" {
		errs = append(errs, field.Required(path.Child("list"), "say what to go through: a JMESPath expression without braces, such as request.object.spec.containers"))
	}
	if order := entry.Order; order != nil && *order != kyvernov1.Ascending && *order != kyvernov1.Descending {
		errs = append(errs, field.NotSupported(path.Child("order"), *order, []kyvernov1.ForEachOrder{kyvernov1.Ascending, kyvernov1.Descending}))
	}
	errs = append(errs, validatePatches(entry.PatchStrategicMerge, entry.PatchesJSON6902, entry.ForEach != nil, path)...)
	if entry.ForEach == nil {
		errs = append(errs, v.validateContext(entry.Context, path.Child("context"))...)
		return append(errs, validatePreconditions(entry.Preconditions, false, path.Child("preconditions"))...)
	}
	const inner = "an entry with a foreach cannot have any: move it into the entries of that"
	if len(entry.Context) > 0 {
		errs = append(errs, field.Forbidden(path.Child("context"), inner))
	}
	if entry.Preconditions != nil {
		errs = append(errs, field.Forbidden(path.Child("preconditions"), inner))
	}
	nested, nestedPath := []kyvernov1.ForEachMutation(nil), path.Child("foreach")
	if faults := decodeStrictly(entry.ForEach.Raw, &nested, nestedPath); len(faults) > 0 {
		return append(errs, faults...)
	}
	if len(nested) == 0 {
		return append(errs, field.Required(nestedPath, "an entry is needed"))
	}
	return append(errs, v.validateForEach(nested, depth+1, nestedPath)...)
}

// decodeStrictly decodes JSON that the API server has taken as it is.
func decodeStrictly(raw []byte, into any, path *field.Path) field.ErrorList {
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		text := strings.NewReplacer("json: ", "", "Go struct field ", "the field ", "Go value ", "a value ").Replace(err.Error())
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, text)}
	}
	var errs field.ErrorList
	for _, fault := range strict {
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, fault.Error()))
	}
	return errs
}
