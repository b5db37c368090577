// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// Pieces of expressions with loops, of which many fail for some elements. $R stands for
// what is looped over, $I and $X for an index and an element of it, $E for what is made
// of that and $P for whether. Maps have one key: a loop takes keys in any order.
var (
	loopShapes = []string{
		"$R.filter($X, $P)", "$R.map($X, $E)", "$R.map($X, $P, $E)", "$R.transformList($I, $X, $E)", "$R.transformList($I, $X, $P, $E)", "[$R].transformMap($I, $X, $E)",
		"$R.all($X, $P)", "$R.exists($I, $X, $P)", "$R.exists_one($X, $P)", "$R.filter($X, $P).map($X, $E)", "$R.map($X, $E).filter($X, $P)", "$R.map($X, $E) + $R.filter($X, $P)", "$R.map($X, $E) == $R.map($X, $E)",
		"$R.filter($X, $P).size()", "$R.map($X, $E)[0]", "$R.map($X, $E)[?1]", "$R.map($X, $E).transformList($I, $X, [$I, $X])", "[$R.map($X, $E), $R.filter($X, $P)].flatten()", "$R.map($X, string($E)).join('-')",
		"$R.map($X, $E).map($X, [$X])", "optional.of($R).optMap(l, l.map($X, $E))", "optional.of([]).optMap(l, $R.map($X, l + [$X]))", "optional.of([]).optMap(l, $R.map($X, l + [?optional.of(1)]))", "optional.of([]).optMap(l, (l + [1]) == (l + [2]))",
		"$R", "$R == $R", "[$R, $R]", "{'r': $R}.r", "$R in [$R]",
	}
	loopRanges = []string{
		"object.spec.items", "object.spec.items", "oldObject.spec.items", "object.spec.numbers", "object.spec.matrix", "object.spec.matrix[1]", "object.spec.matrix.map(m, m[0])", "object.metadata.labels", "object.spec.none", "object.spec.absent",
		"object.spec.count", "object.?spec.?items.orValue([])", "object.spec['items']", "dyn([1, 2, 3])", "dyn(['b', 1, null])", "dyn({'a': 1})", "dyn([])", "dyn([dyn([1]), dyn([]), dyn([2, dyn('x')])])", "[optional.of(1), optional.none()]", "dyn([1 / object.spec.zero])", "lists.range(3)",
		"object.spec.items.filter(f, has(f.tags))", "$X", "$X.tags", "[$X]",
	}
	elements = []string{
		"$X", "$X", "[$X]", "$X.name", "$X.tags", "$X.tags[0]", "$X.absent", "10 / ($X - 2)", "10 / $X", "$X + 1", "$X + $X", "string($X)", "$X.?name", "optional.of($X)", "optional.none()", "[?$X]", "[?$X.?name]", "[?optional.of($X), $X]", "{'k': $X}", "{'k': [$X]}.k", "type($X)", "null",
		"object.spec.items[0]", "object.spec.numbers[$X]", "authorizer.path(string($X)).check('get').allowed()", "authorizer.path('/' + $X.name).check('get').reason()", "[[$X]]", "[$X, $X]", "[$X, authorizer.path(string($X)).check('get').reason()]", "$X == 2 ? $X : $X.name",
	}
	predicates = []string{
		"true", "false", "authorizer.path('/' + string($X)).check('get').allowed()", "$X > 1", "$X != 'b'", "$X == object.spec.items[0]", "$X in object.spec.items", "has($X.tags)", "$X.name == 'a'", "$X.name.startsWith('a')", "size($X) > 0", "10 / ($X - 2) > 0", "authorizer.path(string($X)).check('get').allowed()", "$X", "$X.ready", "type($X) == map", "object.spec.zero == 0", "has(object.?spec.items)", "has(object.spec.?absent.items)",
	}
	placeholder = regexp.MustCompile(`\$[RIXEP]`)
)

// loop returns an expression with loops, some of them within others, where variables
// are in scope.
func (g generator) loop(depth int, variables ...string) string {
	variable := fmt.Sprint("x", depth)
	within := append(slices.Clone(variables), variable)
	fill := func(piece, variable string) string { return strings.ReplaceAll(piece, "$X", variable) }
	return placeholder.ReplaceAllStringFunc(g.of(loopShapes), func(place string) string {
		deeper := depth < 2 && g.IntN(4) == 0
		switch {
		case place == "$X":
			return variable
		case place == "$I":
			return fmt.Sprint("i", depth)
		case place == "$R" && deeper:
			return "(" + g.loop(depth+1, variables...) + ")"
		case place == "$R":
			return fill(g.of(loopRanges), g.of(append([]string{"object.spec.items[8]"}, variables...)))
		case deeper:
			return g.loop(depth+1, within...)
		case place == "$E":
			return fill(g.of(elements), g.of(within))
		}
		return fill(g.of(predicates), g.of(within))
	})
}

// asked remembers the paths about which it has been asked, in their order.
type asked []string

// Authorize implements authorizer.UnconditionalAuthorizer.
func (a *asked) Authorize(_ context.Context, about authorizer.Attributes) (authorizer.Decision, string, error) {
	*a = append(*a, about.GetPath())
	if strings.HasSuffix(about.GetPath(), "b") {
		return authorizer.DecisionDeny, "b", nil
	}
	return authorizer.DecisionAllow, about.GetPath(), nil
}

func loopInput(t *testing.T) policy.Input {
	t.Helper()
	object := func(text string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), &obj.Object); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	req := request.New(request.Fields{
		UID: "u", Name: "web", Namespace: "default", Operation: admission.Update, User: &user.DefaultInfo{Name: "jane"},
		Kind:     schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"},
		Object: object(`{"metadata": {"labels": {"a": "x"}}, "spec": {"zero": 0, "count": 3, "none": [], "numbers": [1, 2, 3, 2], "matrix": [[1, 2], [], ["a", [3]]],
			"items": [{"name": "a"}, {"tags": ["b", "c"]}, {"ready": true}, {"name": "b"}, {"tags": []}, 2, "b", null, {"tags": {"a": 1}}]}}`),
		OldObject: object(`{"spec": {"items": [{"name": "a"}, {"name": "old"}, {"tags": [1]}, {"ready": false}]}}`),
	})
	return policy.Input{Request: req, Matched: cluster.Equivalent{Resource: req.Resource, Kind: req.Kind}}
}

// found is everything that evaluating an expression shows.
type found struct {
	Type, Value, Error string
	Asked              []string
}

func foundBy(evaluate func(authorizer.UnconditionalAuthorizer) (ref.Val, error)) found {
	var paths asked
	value, err := evaluate(&paths)
	if err != nil {
		return found{Error: err.Error(), Asked: paths}
	}
	return found{Type: fmt.Sprintf("%T", value), Value: types.Format(value), Asked: paths}
}

// TestLean compares values, errors and the order of evaluation with those of the
// programs of cel-go, where others have looked at the same request before.
func TestLean(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	compiler, in := newCompiler(), loopInput(t)
	shared, version := versionOf(t, in)
	frame := version.take(in.Matched.Resource)
	rounds := 3_000
	if testing.Short() {
		rounds = 500
	}
	outcomes := map[string]int{}
	for round := range rounds {
		if round%50 == 0 { // seldom enough to have many parts
			frame = version.take(in.Matched.Resource)
		}
		source := g.loop(0)
		p, errs := compiler.compile(specOf([][2]string{{"v", source}}, "true"))
		if len(errs) > 0 {
			outcomes["not compiled"]++
			continue
		}
		expression := p.variables.list[0].expression
		program, err := expression.planner.tracked(expression.checked, cel.CostLimit(math.MaxInt64))
		if err != nil {
			t.Fatal(err)
		}
		want := foundBy(func(who authorizer.UnconditionalAuthorizer) (ref.Val, error) {
			e := version.take(in.Matched.Resource).evaluate(t.Context(), p, nil, shared.param(nil), who)
			value, _, err := program.ContextEval(t.Context(), e)
			return value, err
		})
		for again := range 2 {
			got := foundBy(func(who authorizer.UnconditionalAuthorizer) (ref.Val, error) {
				return frame.evaluate(t.Context(), p, nil, shared.param(nil), who).run(t.Context(), expression)
			})
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("seed %d, %s, again %d (-cel-go +lean):\n%s", seed, source, again, diff)
			}
		}
		switch {
		case want.Error != "":
			outcomes["error"]++
		default:
			outcomes[want.Type]++
		}
		if len(want.Asked) > 0 {
			outcomes["asked"]++
		}
	}
	t.Log(outcomes)
	for _, kind := range []string{"error", "asked", "*types.baseList", "*types.baseMap", "types.Bool", "*types.Optional"} {
		if outcomes[kind] == 0 {
			t.Errorf("none of the expressions has led to %s", kind)
		}
	}
}
