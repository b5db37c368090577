// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"sync"
	"testing"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

func TestShelfForgetsWhatIsNotUsed(t *testing.T) {
	var s shelf
	take := func(pattern string) *expression {
		taken, err := s.take(t.Context(), &jmespath.Run{Steps: maxProgram, Bytes: 1}, pattern)
		if err != nil {
			t.Fatal(err)
		}
		return taken
	}
	always, once := take("always"), take("once")
	for i := range 2000 {
		take(fmt.Sprintf("%d-%s", i, strings.Repeat("x", 100)))
		if take("always") != always {
			t.Fatalf("after %d others an expression that is used all the time is compiled again", i)
		}
		kept := 0
		for _, expressions := range []map[string]*expression{s.recent, s.former} {
			for pattern, e := range expressions {
				kept += len(pattern) + e.size
			}
		}
		if kept > maxShelf {
			t.Fatalf("expressions of size %d are kept", kept)
		}
	}
	if take("once") == once {
		t.Error("an expression that was used once is kept for ever")
	}
}

func TestShelfIsSafeForConcurrentUse(t *testing.T) {
	var s shelf
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 500 {
				run := &jmespath.Run{Steps: maxProgram, Bytes: 1}
				pattern := fmt.Sprintf("^%d%s$", (i*(worker+1))%300, strings.Repeat("y?", 200))
				taken, err := s.take(t.Context(), run, pattern)
				if err != nil || taken.regexp.String() != pattern {
					t.Errorf("%q: got %v, %v", pattern, taken, err)
				}
			}
		})
	}
	all.Wait()
}

// The estimate must not be much less than what the compiler makes.
func TestProgramSize(t *testing.T) {
	for _, pattern := range []string{
		"a", "abc", "[a-z]+", "(a|b|c)*", "x{10}", "(ab?c){20}", "(x{2,5}y){3,}", `\p{L}{3}\d+\bfoo\b`, "(?i)Straße", "(((a{3}){3}){3}){3}",
	} {
		parsed, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		if size := programSize(parsed); len(program.Inst) > 3*size+5 {
			t.Errorf("%q has %d instructions and is taken for %d", pattern, len(program.Inst), size)
		}
	}
}
