// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package roles

import (
	"context"
	"reflect"
	"sync"

	"github.com/portcullis-dev/portcullis/pkg/admission/cluster"
	"github.com/portcullis-dev/portcullis/pkg/admission/request"
)

// memoKey names what is known of the user of a request. Policies change only its object.
var memoKey = request.NewLastingKey[*memo]("kyverno roles")

// memo is what has been found for a request before the views that its policies have. It
// is safe for concurrent use.
type memo struct {
	mu    sync.Mutex
	found []found
}

type found struct {
	view                cluster.View
	roles, clusterRoles []string
}

// OfRequest is Of for the user and the namespace of a request. It looks once for all
// policies that ask before the same view; an error is not kept. Nobody may modify the
// result.
func OfRequest(ctx context.Context, view cluster.View, req *request.Request) (roles, clusterRoles []string, err error) {
	known, err := request.Derive(req, memoKey, func(*request.Request) (*memo, error) { return &memo{}, nil })
	if err != nil {
		return nil, nil, err
	}
	mayCompare := view != nil && reflect.ValueOf(view).Comparable()
	if mayCompare {
		if f := known.before(view); f != nil {
			return f.roles, f.clusterRoles, nil
		}
	}
	roles, clusterRoles, err = Of(ctx, view, req.User, req.Namespace)
	if err == nil && mayCompare {
		known.add(found{view, roles, clusterRoles})
	}
	return roles, clusterRoles, err
}

func (m *memo) before(view cluster.View) *found {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.found {
		if m.found[i].view == view {
			return &m.found[i]
		}
	}
	return nil
}

func (m *memo) add(f found) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.found = append(m.found, f)
}
