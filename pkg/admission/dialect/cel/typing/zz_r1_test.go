package typing

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"github.com/portcullis-dev/portcullis/pkg/admission/cluster/offline"
)

func TestZZ(t *testing.T) {
	view, err := offline.New(nil)
	if err != nil { t.Fatal(err) }
	rules := &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{"CREATE"},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}}}}
	for _, n := range []int{2, 4, 8, 10,11,12} {
		p := &admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: rules}
		p.Validations = []admissionregistrationv1.Validation{{Expression: "[1]" + strings.Repeat(".map(x, {x: x})", n) + ".size() > 0"}}
		begin := time.Now()
		r, err := New().Check(context.Background(), view, p)
		fmt.Println("single", n, time.Since(begin), err, r != nil && len(r.Findings) > 0)
	}
	for _, n := range []int{2, 4, 8, 12, 14, 16} {
		p := &admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: rules}
		p.Variables = []admissionregistrationv1.Variable{{Name: "v0", Expression: "1"}}
		for i := 1; i < n; i++ {
			p.Variables = append(p.Variables, admissionregistrationv1.Variable{Name: fmt.Sprint("v", i), Expression: fmt.Sprintf("{variables.v%d: variables.v%d}", i-1, i-1)})
		}
		p.Validations = []admissionregistrationv1.Validation{{Expression: "true"}}
		begin := time.Now()
		r, err := New().Check(context.Background(), view, p)
		fmt.Println("vars", n, time.Since(begin), err, r != nil && len(r.Findings) > 0)
	}
}
