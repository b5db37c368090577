// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package pattern_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// recorded is a pattern, a value, and what MatchPattern of Kyverno 1.19.1 said of them.
type recorded struct {
	Pattern json.RawMessage `json:"pattern"`
	Value   json.RawMessage `json:"value"`
	Match   bool            `json:"match"`
	// Text is what PreProcessPattern said of them in an anchor, if it came to that.
	Text *bool `json:"text"`
}

func TestRecorded(t *testing.T) {
	file, err := os.Open("testdata/kyverno.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	number := 0
	for lines.Scan() {
		number++
		var row recorded
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("line %d: %v", number, err)
		}
		compiled, value := compile(t, string(row.Pattern)), decode(t, string(row.Value))
		if got := compiled.Match(value); got != row.Match {
			t.Errorf("line %d: %s on %s: Match says %v", number, row.Pattern, row.Value, got)
		}
		if row.Text == nil {
			continue
		}
		if got := compiled.MatchText(value); got != *row.Text {
			t.Errorf("line %d: %s on %s: MatchText says %v", number, row.Pattern, row.Value, got)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if number < 1000 {
		t.Errorf("only %d lines", number)
	}
}
