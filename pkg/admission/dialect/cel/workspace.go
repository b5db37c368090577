// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"runtime"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// workspaces hands out workspaces. To extend an environment for each policy would
// take longer than all the rest of compiling it. It is safe for concurrent use.
type workspaces struct {
	base func() *cel.Env

	mu   sync.Mutex
	idle []*workspace // the one used last comes last
}

// take returns a workspace that nobody else has, without variables.
func (w *workspaces) take() *workspace {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.idle) - 1; last >= 0 {
		taken := w.idle[last]
		w.idle = w.idle[:last]
		taken.clear()
		return taken
	}
	return &workspace{base: w.base(), variables: noVariables(), environments: map[declarations]*cel.Env{}}
}

// put takes a workspace back. No more are kept than can be in use all the time.
func (w *workspaces) put(used *workspace) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.idle) < runtime.GOMAXPROCS(0) {
		w.idle = append(w.idle, used)
	}
}

// workspace holds the environments in which the expressions of one policy at a
// time are checked. The variables of that policy are the fields of a type, which
// change under the environments: the type is looked up when an expression is
// checked, and neither a checked expression nor a program, which is made
// elsewhere, keeps hold of it.
type workspace struct {
	base         *cel.Env
	variables    *apiservercel.DeclType
	names        []string // of variables, in the order of their first definition
	environments map[declarations]*cel.Env
}

func (w *workspace) clear() {
	w.variables.Fields = map[string]*apiservercel.DeclField{}
	w.names = w.names[:0]
}

// environment returns the environment for some declarations.
func (w *workspace) environment(declared declarations) (*cel.Env, error) {
	if env := w.environments[declared]; env != nil {
		return env, nil
	}
	env, err := declare(w.base, w.variables, declared)
	if err != nil {
		return nil, err
	}
	w.environments[declared] = env
	return env, nil
}

// define makes a variable visible to what is checked from now on. A definition
// takes the place of another of the same name.
func (w *workspace) define(name string, t *cel.Type) {
	if w.variables.Fields[name] == nil {
		w.names = append(w.names, name)
	}
	w.variables.Fields[name] = apiservercel.NewDeclField(name, fieldType(t), true, nil, nil)
}

// sees returns the types of all variables that source may name, in a form that is
// the same for the same types.
func (w *workspace) sees(source string) string {
	if len(w.names) == 0 || !strings.Contains(source, "variables") {
		return ""
	}
	var types strings.Builder
	for _, name := range w.names {
		// A name with underscores in front may stand for one that is a keyword.
		if strings.HasPrefix(name, "__") || strings.Contains(source, name) {
			types.WriteString(name)
			types.WriteByte('\n')
			types.WriteString(w.variables.Fields[name].Type.CelType().String())
			types.WriteByte('\n')
		}
	}
	return types.String()
}
