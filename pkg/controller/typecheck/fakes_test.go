// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/cel/typing"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
	"github.com/portcullis-dev/portcullis/pkg/controller/internal/reconcile"
)

// world is an API with the reports on what it stores. It counts writes, refuses
// those that are based on something old, and fails as it is told.
type world struct {
	mu      sync.Mutex
	byName  map[string]*v1alpha1.ValidatingAdmissionPolicy
	damaged map[string]error
	notify  []func(policy.ID)
	writes  int
	tried   int
	fail    func(attempt int, written *v1alpha1.ValidatingAdmissionPolicy) error
}

func newWorld() *world {
	return &world{byName: map[string]*v1alpha1.ValidatingAdmissionPolicy{}, damaged: map[string]error{}}
}

func (w *world) Report(id policy.ID) (catalog.Report, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.byName[id.Name]
	if !ok {
		return catalog.Report{}, false
	}
	return catalog.Report{UID: p.UID, Generation: p.Generation, Damage: w.damaged[id.Name]}, true
}

func (w *world) Watch(notify func(policy.ID)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify = append(w.notify, notify)
	for name := range w.byName {
		notify(policy.ID{Kind: reconcile.ValidatingAdmissionPolicy, Name: name})
	}
	last := len(w.notify) - 1
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notify[last] = func(policy.ID) {}
	}
}

// put stores a generation of a policy with one validation.
func (w *world) put(name string, generation int64, expression string) {
	w.mu.Lock()
	p, ok := w.byName[name]
	if !ok {
		p = &v1alpha1.ValidatingAdmissionPolicy{}
		p.Name, p.UID = name, types.UID("uid-of-"+name)
	}
	p = p.DeepCopy()
	p.Generation, p.ResourceVersion = generation, p.ResourceVersion+"s"
	p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: expression}}
	w.byName[name] = p
	w.mu.Unlock()
	w.tell(name)
}

func (w *world) tell(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, notify := range w.notify {
		notify(policy.ID{Kind: reconcile.ValidatingAdmissionPolicy, Name: name})
		notify(policy.ID{Kind: "ValidatingAdmissionPolicyBinding", Name: name}) // not ours
	}
}

// change changes what is stored, as another writer does.
func (w *world) change(name string, change func(*v1alpha1.ValidatingAdmissionPolicy)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.byName[name].DeepCopy()
	change(p)
	p.ResourceVersion += "o"
	w.byName[name] = p
}

func (w *world) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.byName[name]; ok {
		return p.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (w *world) List(context.Context, metav1.ListOptions) (*v1alpha1.ValidatingAdmissionPolicyList, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := &v1alpha1.ValidatingAdmissionPolicyList{}
	for _, p := range w.byName {
		list.Items = append(list.Items, *p.DeepCopy())
	}
	return list, nil
}

func (w *world) UpdateStatus(_ context.Context, p *v1alpha1.ValidatingAdmissionPolicy, _ metav1.UpdateOptions) (*v1alpha1.ValidatingAdmissionPolicy, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tried++
	if w.fail != nil {
		if err := w.fail(w.tried, p); err != nil {
			return nil, err
		}
	}
	old, ok := w.byName[p.Name]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, p.Name)
	}
	if old.ResourceVersion != p.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{}, p.Name, errors.New("it has changed"))
	}
	w.writes++
	updated := old.DeepCopy()
	updated.Status = *p.Status.DeepCopy()
	updated.ResourceVersion += "w"
	w.byName[p.Name] = updated
	return updated.DeepCopy(), nil
}

func (w *world) get(name string) *v1alpha1.ValidatingAdmissionPolicy {
	p, err := w.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return &v1alpha1.ValidatingAdmissionPolicy{}
	}
	return p
}

// due are the names of the policies that the controller finds due.
func (w *world) due(c *Controller) []string {
	list, _ := w.List(context.Background(), metav1.ListOptions{}) // cannot fail
	var names []string
	for i := range list.Items {
		if c.due(&list.Items[i]) {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

func (w *world) count() (tried, writes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tried, w.writes
}

// checks is a checker whose result depends on the expression. Without one it fails.
type checks struct {
	mu     sync.Mutex
	done   int
	during func() // called inside each check
	found  map[string]*typing.Result
}

func (c *checks) check(_ context.Context, spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) (*typing.Result, error) {
	c.mu.Lock()
	c.done++
	during, found := c.during, c.found[spec.Validations[0].Expression]
	c.mu.Unlock()
	if during != nil {
		during()
	}
	if found == nil {
		return nil, errors.New("checking types: no luck")
	}
	return found, nil
}

func (c *checks) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

func (c *checks) set(expression string, found *typing.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found[expression] = found
}

func deploymentKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
}

// wrong is a result with one finding.
func wrong(field, text string) *typing.Result {
	return &typing.Result{
		Types:    []schema.GroupVersionKind{deploymentKind()},
		Findings: []typing.Finding{{FieldRef: field, Listed: true, Issues: []typing.Issue{{Kind: deploymentKind(), Text: text, Listed: text}}}},
	}
}

func fits() *typing.Result {
	return &typing.Result{Types: []schema.GroupVersionKind{deploymentKind()}}
}

// run starts a controller that ends with the test.
func run(t *testing.T, w *world, c *checks) *Controller {
	t.Helper()
	controller := New(w, c.check)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx, w)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return controller
}

func eventually(t *testing.T, complaint func() string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(complaint())
	}
}

// said is the condition as status, reason and message, if it is of the generation.
func said(p *v1alpha1.ValidatingAdmissionPolicy) string {
	c := meta.FindStatusCondition(p.Status.Conditions, TypeChecked)
	if c == nil || c.ObservedGeneration != p.Generation || p.Status.ObservedGeneration != p.Generation {
		return ""
	}
	return string(c.Status) + " " + c.Reason + " " + c.Message
}

// await waits until the policy says what is wanted.
func (w *world) await(t *testing.T, name, want string) *v1alpha1.ValidatingAdmissionPolicy {
	t.Helper()
	eventually(t, func() string { return name + " stays " + said(w.get(name)) + ", want " + want }, func() bool { return said(w.get(name)) == want })
	return w.get(name)
}
