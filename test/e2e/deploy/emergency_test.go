// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/portcullis-dev/portcullis/test/cluster"
	"github.com/portcullis-dev/portcullis/test/cluster/clustertest"
	"github.com/portcullis-dev/portcullis/test/controlplane"
)

const (
	breakGlass = "break-glass-until"
	unjudged   = "Portcullis does not judge until "
	// unreachable is what is said of the door that is asked first.
	unreachable = `failed calling webhook "mutations.policy.portcullis.dev"`
	bothDoors   = "validating:validations mutating:mutations"
)

// emergency is a cluster, and someone who may break its glass and no more than write
// ConfigMaps.
type emergency struct {
	*testing.T
	c          *cluster.Cluster
	kubeconfig string
	denial     string
}

const operator = "operator@example.com"

func newEmergency(t *testing.T, c *cluster.Cluster) *emergency {
	t.Helper()
	kubeconfig, err := c.Kubeconfig(operator)
	if err != nil {
		t.Fatal(err)
	}
	must(t, c.ControlPlane, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"operators"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"portcullis:break-glass"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"`+operator+`"}]}
{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"operators","namespace":"default"},
"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"`+operator+`"}]}`,
		"apply", "-f", "-")
	return &emergency{T: t, c: c, kubeconfig: kubeconfig, denial: deny(t, c, "emergency.example.com")}
}

// write creates a ConfigMap that is to be denied, and says what the operator is told.
func (e *emergency) write() (string, error) {
	e.Helper()
	return shell(e.T, e.c.ControlPlane, e.kubeconfig, `echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"denied-","labels":{"denied":"true"}}}' | kubectl create -f -`)
}

// until waits until the operator is told this.
func (e *emergency) until(what, told string) {
	e.Helper()
	eventually(e.T, what, func() string {
		output, err := e.write()
		if !strings.Contains(output, told) {
			return fmt.Sprintf("error %v: %s", err, output)
		}
		return ""
	})
}

// breakGlass runs the documented command as the operator, for so long in place of an
// hour.
func (e *emergency) breakGlass(long string) {
	e.Helper()
	documented := command(e.T, "emergency.md", breakGlass, `"Ignore"`, "+1 hour")
	if output, err := shell(e.T, e.c.ControlPlane, e.kubeconfig, strings.Replace(documented, "+1 hour", long, 1)); err != nil {
		e.Fatalf("%v: %s", err, output)
	}
}

// registered are the failurePolicy and the annotations of a webhook configuration.
func (e *emergency) registered(kind string) (failurePolicy string, annotations map[string]string) {
	e.Helper()
	registration := objects(e.T, must(e.T, e.c.ControlPlane, "", "get", strings.ToLower(kind), "portcullis", "-o", "json"))[kind+" /portcullis"]
	return fmt.Sprint(webhookOf(e.T, registration)["failurePolicy"]), registration.GetAnnotations()
}

// restored waits until both configurations are put back and say last.
func (e *emergency) restored(last string) {
	e.Helper()
	e.restoredOf("ValidatingWebhookConfiguration", last)
	e.restoredOf("MutatingWebhookConfiguration", last)
}

func (e *emergency) restoredOf(kind, last string) {
	e.Helper()
	eventually(e.T, kind+" is put back", func() string {
		failurePolicy, annotations := e.registered(kind)
		_, left := annotations["policy.portcullis.dev/"+breakGlass]
		_, why := annotations["policy.portcullis.dev/break-glass-reason"]
		if failurePolicy != "Fail" || left || why || !strings.Contains(annotations["policy.portcullis.dev/break-glass-last"], last) {
			return fmt.Sprint(failurePolicy, annotations)
		}
		return ""
	})
}

// TestBreakGlass: servers that run admit everything, with a warning, from the command
// on until the time, and then judge again. The audit log knows who it was.
func TestBreakGlass(t *testing.T) {
	e := newEmergency(t, shared)
	e.until("it is denied", e.denial)
	e.breakGlass("+15 seconds")
	e.until("it is admitted", unjudged)
	output, err := e.write()
	if err != nil || !strings.Contains(output, "(break-glass): INC-1234: the node pool cannot scale") || !strings.Contains(output, "created") {
		t.Errorf("got error %v and %q, want a warning with the reason", err, output)
	}
	e.until("it is denied again", e.denial)
	e.restored(": INC-1234: the node pool cannot scale")

	who, what := map[string]int{}, map[string]int{}
	for _, event := range audited(t, shared.ControlPlane) {
		ref := event.ObjectRef
		switch {
		case ref == nil || event.User.Username != operator:
		case strings.HasSuffix(ref.Resource, "webhookconfigurations") && ref.Name == cluster.Registration && event.Verb == "patch":
			who[ref.Resource]++
		default:
			for _, door := range []string{"mutations", "validations"} {
				if strings.Contains(event.Annotations[door+".policy.portcullis.dev/break-glass"], "INC-1234: the node pool cannot scale") {
					what[door]++
				}
			}
		}
	}
	if who["validatingwebhookconfigurations"] != 1 || who["mutatingwebhookconfigurations"] != 1 {
		t.Errorf("the audit log has %v patches of the operator, want one of each", who)
	}
	if what["mutations"] < 1 || what["validations"] < 1 {
		t.Errorf("the audit log has %v requests that were let through, want some of each", what)
	}
	// The manifests say what the servers have put back.
	dir, err := shared.Kustomization()
	if err != nil {
		t.Fatal(err)
	}
	must(t, shared.ControlPlane, "", "apply", "--server-side", "-k", dir)
}

// TestBreakGlassOfMutations: kube-apiserver asks for both phases. The command for the
// mutating configuration alone opens the door of that, and the other phase still denies.
func TestBreakGlassOfMutations(t *testing.T) {
	e := newEmergency(t, shared)
	eventually(t, "kube-apiserver asks for mutations", func() string {
		must(t, shared.ControlPlane, "", "create", "configmap", "mutated", "--dry-run=server")
		for _, event := range audited(t, shared.ControlPlane) {
			if strings.Contains(event.Annotations["mutation.webhook.admission.k8s.io/round_0_index_0"], `"webhook":"mutations.policy.portcullis.dev","mutated":false`) {
				return ""
			}
		}
		return "no event tells of it"
	})
	e.until("it is denied", e.denial)
	documented := command(t, "emergency.md", breakGlass, `"Ignore"`, "+1 hour")
	if !strings.Contains(documented, bothDoors) {
		t.Fatalf("the documented command does not name the doors as %q: %s", bothDoors, documented)
	}
	mustShell(t, shared.ControlPlane, strings.NewReplacer(bothDoors, "mutating:mutations", "+1 hour", "+10 seconds").Replace(documented))
	e.until("mutations are not judged", unjudged)
	if output, err := e.write(); err == nil || !strings.Contains(output, e.denial) {
		t.Errorf("got error %v and %q, want that validations are judged", err, output)
	}
	e.restoredOf("MutatingWebhookConfiguration", "ended: it was until ")
}

// TestBreakGlassIsBounded: a day is refused, at once and visibly, and so is what is no
// time; a window can be ended early, also by removing what opened it.
func TestBreakGlassIsBounded(t *testing.T) {
	e := newEmergency(t, shared)
	e.breakGlass("+1 day")
	e.restored("is more than 4h0m0s after it was written")
	e.until("it is denied", e.denial)
	mustShell(t, shared.ControlPlane, strings.Replace(command(t, "emergency.md", breakGlass, `"Ignore"`), "+%FT%TZ", "+%s", 1))
	e.restored("is no time as in RFC 3339")

	e.breakGlass("+1 hour")
	e.until("it is admitted", unjudged)
	mustShell(t, shared.ControlPlane, command(t, "emergency.md", "kubectl annotate", breakGlass))
	e.restored("ended: it was until ")
	e.until("it is denied", e.denial)

	e.breakGlass("+1 hour")
	e.until("it is admitted", unjudged)
	must(t, shared.ControlPlane, "", "annotate", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "portcullis", "policy.portcullis.dev/break-glass-until-", "policy.portcullis.dev/break-glass-reason-")
	e.restored("ended: the annotations were removed")
	e.until("it is denied", e.denial)
}

// TestBreakGlassWithoutServers: the same command lets everything through when nobody
// answers, and the first server that comes back puts an end to it.
func TestBreakGlassWithoutServers(t *testing.T) {
	c := clustertest.Start(t)
	e := newEmergency(t, c)
	for _, replica := range c.Replicas {
		replica.Kill()
	}
	e.until("nobody answers", unreachable)
	e.breakGlass("+20 seconds")
	e.until("it is admitted", "created")
	if output, err := e.write(); err != nil || strings.Contains(output, unjudged) {
		t.Errorf("got error %v and %q, want that nobody was asked", err, output)
	}
	eventually(t, "the window is over", func() string {
		if output := mustShell(t, c.ControlPlane, `kubectl get validatingwebhookconfiguration portcullis -o go-template='{{index .metadata.annotations "policy.portcullis.dev/break-glass-until"}}'; echo; date -u +%FT%TZ`); strings.Fields(output)[0] >= strings.Fields(output)[1] {
			return output
		}
		return ""
	})
	if output, err := e.write(); err != nil {
		t.Errorf("nobody can put it back, and yet: %v: %s", err, output)
	}
	for _, replica := range c.Replicas {
		if err := replica.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	e.restored("ended: it was until ")
	e.until("it is denied", e.denial)

	failedOpen := map[string]int{}
	for _, event := range audited(t, c.ControlPlane) {
		for key := range event.Annotations {
			if phase, _, found := strings.Cut(key, ".webhook.admission.k8s.io/"); found && event.User.Username == operator {
				failedOpen[phase]++
			}
		}
	}
	if failedOpen["failed-open.mutation"] == 0 || failedOpen["failed-open.validating"] == 0 {
		t.Errorf("the audit log does not tell what went through: %v", failedOpen)
	}

	// By hand, while no server runs.
	for _, replica := range c.Replicas {
		replica.Kill()
	}
	e.breakGlass("+1 hour")
	e.until("it is admitted", "created")
	mustShell(t, c.ControlPlane, command(t, "emergency.md", `"Fail"`))
	e.until("nobody answers", unreachable)
}

// audited are the events of the audit log of kube-apiserver at the end of requests.
func audited(t *testing.T, c *controlplane.ControlPlane) []auditv1.Event {
	t.Helper()
	file, err := os.Open(c.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var events []auditv1.Event
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return events // the last line may be half written
		}
		if !bytes.Contains(line, []byte(`"stage":"ResponseComplete"`)) {
			continue
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		events = append(events, event)
	}
}
