// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package autogen

import (
	"slices"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/selection"
	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// supported says whether rules are made of those of a policy: of none if one of them
// generates objects, has JSON patches, or selects by what Pods and their controllers do
// not have in common; and of none if no rule names Pods, or a controller, without group
// and version. See CanAutoGen in Kyverno's pkg/autogen/v1.
func supported(spec *kyvernov1.Spec) bool {
	named := false
	for i := range spec.Rules {
		rule := &spec.Rules[i]
		if rule.Generate != nil || hasJSONPatches(rule.Mutate) {
			return false
		}
		blocks := []*kyvernov1.MatchResources{&rule.Match}
		if rule.Exclude != nil {
			blocks = append(blocks, rule.Exclude)
		}
		for _, block := range blocks {
			for _, description := range descriptionsOf(block) {
				if !common(description) {
					return false
				}
				named = named || slices.ContainsFunc(description.Kinds, isNamed)
			}
		}
	}
	return named
}

// hasJSONPatches does not look into nested loops, as Kyverno does not.
func hasJSONPatches(mutation *kyvernov1.Mutation) bool {
	return mutation != nil && (mutation.PatchesJSON6902 != "" ||
		slices.ContainsFunc(mutation.ForEach, func(entry kyvernov1.ForEachMutation) bool { return entry.PatchesJSON6902 != "" }))
}

// common says whether a description selects controllers by what it selects Pods by.
func common(description *kyvernov1.ResourceDescription) bool {
	mixed := len(description.Kinds) > 1 && slices.ContainsFunc(description.Kinds, isPod)
	return !mixed && description.Name == "" && len(description.Names) == 0 &&
		description.Selector == nil && len(description.Annotations) == 0
}

// isPod says whether an entry of kinds names Pods, or a subresource of theirs.
func isPod(kind string) bool { return selection.KindName(kind) == pod }

// isNamed says whether an entry of kinds is that of a controller, or of Pods, and no more.
func isNamed(kind string) bool {
	return kind == pod || kind == cronJob || slices.ContainsFunc(templated(), func(of string) bool { return bare(of) == kind })
}

// descriptionsOf returns what is in a block, in the older form and in the two newer ones.
func descriptionsOf(block *kyvernov1.MatchResources) []*kyvernov1.ResourceDescription {
	descriptions := []*kyvernov1.ResourceDescription{&block.Resources}
	for _, filters := range [][]kyvernov1.ResourceFilter{block.Any, block.All} {
		for i := range filters {
			descriptions = append(descriptions, &filters[i].Resources)
		}
	}
	return descriptions
}

func kindsOf(block *kyvernov1.MatchResources) []string {
	var kinds []string
	for _, description := range descriptionsOf(block) {
		kinds = append(kinds, description.Kinds...)
	}
	return kinds
}
