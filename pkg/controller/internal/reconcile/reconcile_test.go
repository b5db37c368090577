// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/portcullis-dev/portcullis/pkg/admission/catalog"
	"github.com/portcullis-dev/portcullis/pkg/admission/policy"
	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// reported are the ids that Watch tells of at once.
type reported []policy.ID

func (reported) Report(policy.ID) (catalog.Report, bool) { return catalog.Report{}, true }

func (r reported) Watch(notify func(policy.ID)) (stop func()) {
	for _, id := range r {
		notify(id)
	}
	return func() {}
}

// listed are the names of the stored policies. Without any, they cannot be listed.
type listed []string

func (l listed) List(context.Context, metav1.ListOptions) (*v1alpha1.ValidatingAdmissionPolicyList, error) {
	if len(l) == 0 {
		return nil, errors.New("no etcd")
	}
	list := &v1alpha1.ValidatingAdmissionPolicyList{}
	for _, name := range l {
		list.Items = append(list.Items, v1alpha1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list, nil
}

func celKind(stored listed, due func(*v1alpha1.ValidatingAdmissionPolicy) bool) Kind {
	return KindOf(ValidatingAdmissionPolicy, stored.List, due)
}

// lines are safe for concurrent use.
type lines struct {
	mu    sync.Mutex
	lines []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.lines))
}

func (l *lines) await(t *testing.T, want ...string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return slices.Equal(l.all(), want), nil })
	if err != nil {
		t.Fatalf("got %q, want %q", l.all(), want)
	}
}

// run runs a loop until the test ends, and returns what it logs.
func run(t *testing.T, l *Loop, reports Reports) *lines {
	t.Helper()
	logged := &lines{}
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), funcr.New(func(_, args string) { logged.add(args) }, funcr.Options{})))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.Run(ctx, reports, celKind(nil, nil), Kind{Name: Policy, due: func(context.Context) []policy.ID { return nil }})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return logged
}

// TestWhatIsLookedAt: what is reported of policies, and what the controller adds.
func TestWhatIsLookedAt(t *testing.T) {
	looked := &lines{}
	run(t, &Loop{
		Name: "test", Workers: 2,
		Sync: func(_ context.Context, id policy.ID) error { looked.add(id.Namespace + "/" + id.Name); return nil },
		Feed: func(ctx context.Context, add func(policy.ID)) {
			add(policy.ID{Kind: Policy, Namespace: "n", Name: "c"})
			<-ctx.Done()
		},
	}, reported{
		{Kind: ValidatingAdmissionPolicy, Name: "a"},
		{Kind: "ValidatingAdmissionPolicyBinding", Name: "no"},
		{Kind: ClusterPolicy, Name: "neither"},
		{Kind: Policy, Namespace: "n", Name: "b"},
	})
	looked.await(t, "/a", "n/b", "n/c")
}

func TestLookAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		stored listed
		due    func(*v1alpha1.ValidatingAdmissionPolicy) bool
		want   []string
	}{
		{"all", listed{"a", "b"}, nil, []string{"a", "b"}},
		{"those that are due", listed{"a", "b"}, func(p *v1alpha1.ValidatingAdmissionPolicy) bool { return p.Name == "b" }, []string{"b"}},
		{"cannot be listed", nil, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			lookAgain(t.Context(), []Kind{celKind(test.stored, test.due)}, func(id policy.ID) { got = append(got, id.Name) })
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestOutage: after each failure there is another attempt, and the log has one line
// when the outage begins and one when it ends. A conflict is no outage.
func TestOutage(t *testing.T) {
	tried := &lines{}
	l := &Loop{Name: "test", Workers: 1, Failing: "It fails", Recovered: "It works"}
	failures := []error{
		apierrors.NewConflict(schema.GroupResource{}, "a", errors.New("changed")),
		errors.New("no etcd"), errors.New("no etcd"), nil,
	}
	attempt := 0
	l.Sync = func(ctx context.Context, id policy.ID) error {
		tried.add(id.Name)
		err := failures[attempt]
		attempt++
		if err == nil {
			l.Succeeded(ctx)
			l.Succeeded(ctx)
		}
		return err
	}
	logged := run(t, l, reported{{Kind: ValidatingAdmissionPolicy, Name: "a"}})
	logged.await(t, `"level"=0 "msg"="It works"`, `"msg"="It fails" "error"="no etcd" "kind"="ValidatingAdmissionPolicy" "namespace"="" "policy"="a"`)
	if got := strings.Join(tried.all(), ""); got != "aaaa" {
		t.Errorf("%d attempts, want 4", len(got))
	}
}

func TestIgnoreNotFound(t *testing.T) {
	other := errors.New("no etcd")
	if got := IgnoreNotFound(other); !errors.Is(got, other) {
		t.Errorf("got %v", got)
	}
	if got := IgnoreNotFound(apierrors.NewNotFound(schema.GroupResource{}, "a")); got != nil {
		t.Errorf("got %v", got)
	}
}
