// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults_test brings faults about in a cluster with two replicas of Portcullis
// under load, and counts what goes wrong. It knows nothing of what is inside of the
// servers: it kills, stops and starts them, and asks them at their doors.
//
// The tests need the build tag e2e, and the binaries of make controlplane and make build.
package faults_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../../../docs/faults-in-a-cluster.md"

// row is one fault.
type row struct {
	fault string
	// judged is what happens to writes on which policies have a say.
	judged string
	// other is what else the cluster sees of it.
	other string
	// ends says how it ends.
	ends string
	// test names the test that brings it about.
	test string
}

func rows() []row {
	return []row{
		{
			"a replica is killed", "judged by the others; those under way at the killed one are refused",
			"-", "the replica is started again, and judges once it has read all policies", "TestKilled",
		},
		{
			"all replicas are killed", "refused",
			"the API group is not available: see the row about the start", "at once, when one of them is ready", "TestKilled",
		},
		{
			"a replica starts that has not read all policies yet", "refused by it, and not sent to it: it is not ready",
			"-", "when it has read them", "TestKilled",
		},
		{
			"all replicas are replaced, one after the other", "judged; none is lost",
			"no replica changes the APIService", "-", "TestRollingRestart",
		},
		{
			"many writes come at once, and kube-apiserver has no connection to the replicas yet", "judged; none is lost",
			"-", "-", "TestManyAtOnce",
		},
		{
			"a replica hangs, with its connections open", "those sent to it are refused after the timeout of the registration (10 s): all, perhaps, since kube-apiserver keeps a connection, until it gives that up after 45 s, or 100 wait; then all are judged by the others",
			"it gets no new connections; the API group may be unavailable as long, since kube-apiserver looks at it over the same connection", "nobody needs to do anything; the replica may also go on", "TestHung",
		},
		{
			"etcd of Portcullis is gone", "judged by the policies as they were stored",
			"the replicas stay ready, and the API group available; writes of policies are refused with 503 after 2.5 s", "writes succeed and are in force as soon as etcd is back", "TestEtcdGone",
		},
		{
			"kube-apiserver is gone", "at the direct door: judged by policies and params as they were",
			"the replicas stay ready", "when it is back, params and policies are followed again", "TestKubeAPIServerKilled",
		},
		{
			"everything was dead, and kube-apiserver starts first", "refused: nothing is admitted unjudged",
			"admitted: Leases, Nodes, SubjectAccessReviews, and everything in kube-system and portcullis-system", "nobody needs to do anything but start the rest", "TestColdStart",
		},
		{
			"a policy denies everything", "denied",
			"policies can be written and removed; replicas start, and conditions are written", "kubectl delete of the policy or its binding", "TestDenyEverything",
		},
		{
			"a policy is Ready and one of the replicas lags", "this does not happen: Ready waits for every replica",
			"-", "-", "TestReadyMeansEverywhere",
		},
		{
			"a namespace is deleted while Portcullis is up", "-",
			"its objects go, and so does the namespace", "-", "TestNamespaceIsDeleted",
		},
		{
			"the owner of an object is deleted", "-",
			"the object is collected, a binding that its policy owns among others", "-", "TestGarbageIsCollected",
		},
		{
			"a ResourceQuota is used up", "judged, and refused by the quota",
			"what is used is counted", "-", "TestQuotaIsCounted",
		},
		{
			"a client asks which kinds there are", "-",
			"it is told all, without an error", "-", "TestDiscoveryIsSound",
		},
	}
}

// TestPage holds docs/faults-in-a-cluster.md to the table, and the table to the tests.
func TestPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(pageHead)
	for i, r := range rows() {
		checkTest(t, r.test)
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s |\n", i+1, r.fault, r.judged, r.other, r.ends, r.test)
	}
	b.WriteString(pageFoot)
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("docs/faults-in-a-cluster.md does not say what the tests show; run: make update-faults\n(-want +have):\n%s", diff)
	}
}

var update = flag.Bool("update", false, "write docs/faults-in-a-cluster.md")

// checkTest fails when there is no such test.
func checkTest(t *testing.T, name string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(code), "func "+name+"(") {
			return
		}
	}
	t.Errorf("there is no test %s", name)
}

const pageHead = `# When something goes wrong in a cluster

What happens in a cluster whose writes Portcullis judges with two replicas, as artifacts/deploy installs it
(failurePolicy Fail), fault by fault. [faults.md](faults.md) is about single requests. Each row is a test
([test/e2e/faults](../test/e2e/faults)) with a real kube-apiserver, and this page is written by it. ` + "`make test`" + ` runs them
briefly; ` + "`make prove-faults`" + ` runs them for ten minutes and prints figures.

To be refused is not to be denied: nobody has judged, kube-apiserver answers 500, and the same write may succeed
later. No fault has a write admitted that policies have a say in and have not judged.

| # | Fault | Writes on which policies have a say | What else is seen | How it ends | Test |
|---|---|---|---|---|---|
`

const pageFoot = `
While all replicas are down, kube-apiserver cannot list what the API group has. Until it can:

- a namespace that is deleted stays Terminating;
- the garbage collector waits before it collects anything that is new to it;
- kubectl names the group in an error when it looks for kinds that it does not know.

This ends by itself when a replica is ready. Where none will be: [uninstall.md](uninstall.md).
`
