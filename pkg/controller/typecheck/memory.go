// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package typecheck

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

// memory knows which policies were checked against the types as they are, so that
// none is checked twice. It has a small entry for each stored policy.
type memory struct {
	mu     sync.Mutex
	epoch  int // counts the changes of types
	byName map[string]mark
}

// mark is what was checked and written last. It is empty before that.
type mark struct {
	uid        types.UID
	generation int64
	status     uint64 // digest of what was written
	failed     bool   // what was written is that the check has failed
}

func newMemory() *memory { return &memory{byName: map[string]mark{}} }

// begin says whether a generation of a policy is checked. If not, it returns what
// remember wants to know when it is. From here on forgetAll names the policy.
func (m *memory) begin(name string, uid types.UID, generation int64) (since int, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.byName[name]
	if last.generation == generation && last.uid == uid && last.status != 0 {
		return m.epoch, true
	}
	m.byName[name] = mark{}
	return m.epoch, false
}

// remember notes that a policy is checked and its status written, unless the types
// have changed since. A check that has failed counts until agrees is asked.
func (m *memory) remember(stored *v1alpha1.ValidatingAdmissionPolicy, since int, failed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epoch == since {
		m.byName[stored.Name] = mark{uid: stored.UID, generation: stored.Generation, status: digest(stored), failed: failed}
	}
}

// agrees says that the policy is checked and has the status that was written then,
// or that it is being checked.
func (m *memory) agrees(stored *v1alpha1.ValidatingAdmissionPolicy) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.byName[stored.Name]
	return ok && !last.failed &&
		(last.status == 0 || last.uid == stored.UID && last.generation == stored.Generation && last.status == digest(stored))
}

// forget has a policy checked again the next time.
func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byName, name)
}

// keep forgets the policies that are not kept: while nobody looked, they may have gone.
func (m *memory) keep(kept func(name string) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.byName, func(name string, _ mark) bool { return !kept(name) })
}

// forgetAll has all policies checked again the next time, and returns their names.
func (m *memory) forgetAll() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	for name := range m.byName {
		m.byName[name] = mark{}
	}
	return slices.Collect(maps.Keys(m.byName))
}

// digest is of the part of the status that this package writes. It is never 0.
func digest(stored *v1alpha1.ValidatingAdmissionPolicy) uint64 {
	sum := fnv.New64a()
	// What is not encoded is only written again.
	_ = json.NewEncoder(sum).Encode([]any{
		stored.Status.ObservedGeneration, stored.Status.TypeChecking, meta.FindStatusCondition(stored.Status.Conditions, TypeChecked),
	})
	return max(1, sum.Sum64())
}
