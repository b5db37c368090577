// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// workerVariable holds the order of a process that measures one side.
const workerVariable = "PORTCULLIS_COMPARE_WORKER"

// order says what a worker measures.
type order struct {
	Name     string
	Workload workload
	Upstream bool
}

// installed is what a worker learns when it installs its workload, for each policy.
type installed struct {
	Compiling time.Duration // CPU time
	Heap      float64       // bytes
	Waking    time.Duration // that a request takes longer when the policy is at rest; of portcullis
}

// worker is a process of its own, so that no side carries the heap of another, and all
// can be measured in turn: a machine that becomes slower makes all of them slower.
type worker struct {
	order
	installed installed
	rounds    []cost
	input     io.WriteCloser
	output    *json.Decoder
}

func startWorker(t *testing.T, o order) *worker {
	t.Helper()
	encoded, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	answers, own, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The end of the test ends its context first, and the worker is to end by itself.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestWorker$", "-test.timeout=60m")
	command.Env = append(os.Environ(), workerVariable+"="+string(encoded))
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	command.ExtraFiles = []*os.File{own}
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	own.Close()
	t.Cleanup(func() {
		input.Close() // ends it
		if err := command.Wait(); err != nil && !t.Failed() {
			t.Errorf("%s: %v", o.Name, err)
		}
		answers.Close()
	})
	w := &worker{order: o, input: input, output: json.NewDecoder(answers)}
	w.read(t, &w.installed)
	return w
}

// measure has the worker measure one round, while all others wait.
func (w *worker) measure(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(w.input, "round\n"); err != nil {
		t.Fatalf("%s: %v", w.Name, err)
	}
	var c cost
	w.read(t, &c)
	w.rounds = append(w.rounds, c)
}

func (w *worker) read(t *testing.T, into any) {
	t.Helper()
	if err := w.output.Decode(into); err != nil {
		t.Fatalf("%s has ended too early: %v", w.Name, err)
	}
}

// TestWorker is what a worker runs.
func TestWorker(t *testing.T) {
	encoded := os.Getenv(workerVariable)
	if encoded == "" {
		t.Skip("is run by TestCompare")
	}
	var o order
	if err := json.Unmarshal([]byte(encoded), &o); err != nil {
		t.Fatal(err)
	}
	op, learnt := o.install(t)
	answers := json.NewEncoder(os.NewFile(3, "answers"))
	if err := answers.Encode(learnt); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := answers.Encode(measure(t, op)); err != nil {
			t.Fatal(err)
		}
	}
}

func (o *order) install(t *testing.T) (op func(), learnt installed) {
	t.Helper()
	policies := o.Workload.Policies
	if o.Upstream {
		u := startUpstream(t, o.Workload)
		return func() { u.judge(t) }, installed{Compiling: u.compiling / time.Duration(policies), Heap: float64(u.heap) / float64(policies)}
	}
	p := startPortcullis(t, o.Workload)
	learnt = installed{Compiling: p.compiling / time.Duration(policies), Heap: float64(p.heap) / float64(policies)}
	if !o.Workload.InUse {
		learnt.Waking = p.waking(t) / time.Duration(o.Workload.matching())
	}
	return func() { p.judge(t) }, learnt
}
