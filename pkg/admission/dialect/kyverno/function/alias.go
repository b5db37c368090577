// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"errors"
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// payForAliases pays for the values of a YAML document with all aliases in place, where a
// few lines can stand for more than fits into a computer.
func payForAliases(ctx context.Context, run *jmespath.Run, text string) error {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return fmt.Errorf("the text is not YAML: %w", err)
	}
	sizes := expansion{}
	size, err := sizes.of(&document)
	if err != nil {
		return err
	}
	return run.Spend(ctx, size/bytesPerItem, size)
}

// expansion holds how many bytes the nodes of a document take with all aliases in place.
// It is negative for a node that is being looked at. The parser bounds the depth.
type expansion map[*yaml.Node]int

func (e expansion) of(node *yaml.Node) (int, error) {
	if size, ok := e[node]; ok {
		if size < 0 {
			return 0, errors.New("an anchor of the YAML text contains an alias of itself")
		}
		return size, nil
	}
	e[node] = -1
	size := bytesPerItem + len(node.Value)
	children := node.Content
	if node.Alias != nil {
		children = []*yaml.Node{node.Alias}
	}
	for _, child := range children {
		more, err := e.of(child)
		if err != nil {
			return 0, err
		}
		size = min(size+more, math.MaxInt32)
	}
	e[node] = size
	return size, nil
}
