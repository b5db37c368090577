// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package autogen

import (
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	kyvernov1 "github.com/portcullis-dev/portcullis/pkg/apis/kyverno/v1"
)

// maxName is the number of bytes of a name that are kept.
const maxName = 63

// forTemplates returns what becomes of a rule about Pods for controllers of these kinds.
func forTemplates(rule *kyvernov1.Rule, kinds []string) kyvernov1.Rule {
	rewritten := named(rule, prefix+rule.Name)
	selectKinds(&rewritten.Match, kinds, isAboutPods)
	if rewritten.Exclude != nil {
		selectKinds(rewritten.Exclude, kinds, isAboutPods)
	}
	rewritten.Mutate = below(rule.Mutate, "template")
	return replaced(rewritten, "spec.template.")
}

// forCronJobs returns what becomes of a rule about Pods for CronJobs. All filters of any
// and all become filters for CronJobs, whatever their kinds are, as they do in Kyverno.
func forCronJobs(rule *kyvernov1.Rule) kyvernov1.Rule {
	rewritten := named(rule, prefix+"cronjob-"+rule.Name)
	each := func(kyvernov1.ResourceFilter) bool { return true }
	selectKinds(&rewritten.Match, cronJobs(), each)
	if rewritten.Exclude != nil {
		selectKinds(rewritten.Exclude, cronJobs(), each)
	}
	rewritten.Mutate = below(below(rule.Mutate, "template"), "jobTemplate")
	return replaced(rewritten, "spec.jobTemplate.spec.template.")
}

// named returns a copy of a rule whose match and exclude may be changed.
func named(rule *kyvernov1.Rule, name string) kyvernov1.Rule {
	rewritten := *rule
	rewritten.Name = name[:min(len(name), maxName)]
	rule.Match.DeepCopyInto(&rewritten.Match)
	rewritten.Exclude = rule.Exclude.DeepCopy()
	return rewritten
}

func isAboutPods(filter kyvernov1.ResourceFilter) bool {
	return slices.ContainsFunc(filter.Resources.Kinds, isPod)
}

// selectKinds makes a block one about other kinds, as far as these filters of it go.
func selectKinds(block *kyvernov1.MatchResources, kinds []string, selected func(kyvernov1.ResourceFilter) bool) {
	filters := block.Any
	if len(filters) == 0 {
		filters = block.All
	}
	for i := range filters {
		if selected(filters[i]) {
			filters[i].Resources.Kinds = kinds
		}
	}
	if len(filters) == 0 && len(block.Resources.Kinds) > 0 {
		block.Resources.Kinds = kinds
	}
}

// below returns a mutation that does to a field of the spec what the given one does to
// the object. Of loops, the order is dropped.
func below(mutation *kyvernov1.Mutation, key string) *kyvernov1.Mutation {
	if mutation == nil {
		return nil
	}
	if mutation.PatchStrategicMerge != nil {
		return &kyvernov1.Mutation{PatchStrategicMerge: wrapped(mutation.PatchStrategicMerge, key)}
	}
	moved := &kyvernov1.Mutation{}
	for i := range mutation.ForEach {
		entry := &mutation.ForEach[i]
		moved.ForEach = append(moved.ForEach, kyvernov1.ForEachMutation{
			List: entry.List, Context: entry.Context, Preconditions: entry.Preconditions,
			PatchStrategicMerge: wrapped(entry.PatchStrategicMerge, key),
		})
	}
	return moved
}

// wrapped returns the JSON {"spec": {key: patch}}.
func wrapped(patch *apiextensionsv1.JSON, key string) *apiextensionsv1.JSON {
	raw := slices.Concat([]byte(`{"spec":{"`+key+`":`), patch.Raw, []byte(`}}`))
	return &apiextensionsv1.JSON{Raw: raw}
}

// replaced replaces text everywhere in a rule: what it reads of the Pod is found below
// path. That a field is written in another way, or that the text means something else,
// is not seen, as it is not by Kyverno's updateFields.
func replaced(rule kyvernov1.Rule, path string) kyvernov1.Rule {
	raw, err := json.Marshal(rule)
	if err != nil {
		return unread(rule)
	}
	var pairs []string
	for _, object := range []string{"request.object.", "request.oldObject."} {
		for _, part := range []string{"spec", "metadata"} {
			pairs = append(pairs, object+part, object+path+part)
		}
	}
	var read kyvernov1.Rule
	if err := json.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(string(raw))), &read); err != nil {
		return unread(rule)
	}
	return read
}

// unread is what can be told of a rule whose JSON cannot be read: what it is about. It
// fails there, as the rule does that it is made of.
func unread(rule kyvernov1.Rule) kyvernov1.Rule {
	return kyvernov1.Rule{Name: rule.Name, Match: rule.Match, Exclude: rule.Exclude}
}
