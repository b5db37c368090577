// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy"
)

var (
	_ rest.StandardStorage    = &Store{}
	_ rest.ShortNamesProvider = &Store{}
	_ rest.CategoriesProvider = &Store{}

	_ rest.Patcher             = &StatusStore{}
	_ rest.ResetFieldsStrategy = &StatusStore{}
	_ rest.TableConvertor      = &StatusStore{}
)

// Store serves one stored kind.
type Store struct {
	*genericregistry.Store
	kind Kind
}

// ShortNames returns the abbreviations that kubectl accepts for the resource.
func (s *Store) ShortNames() []string { return s.kind.ShortNames }

// Categories returns the groups of resources that the kind is listed with.
func (s *Store) Categories() []string { return []string{Category} }

// NewStorage returns the storage of the kinds by resource, status subresources
// included, as an API group installs it.
func NewStorage(typer runtime.ObjectTyper, options generic.RESTOptionsGetter, kinds []Kind) (map[string]rest.Storage, error) {
	storage := make(map[string]rest.Storage, 2*len(kinds))
	for _, kind := range kinds {
		store, err := newStore(typer, options, kind)
		if err != nil {
			return nil, fmt.Errorf("storage of %s: %w", kind.Resource, err)
		}
		storage[kind.Resource] = store
		if kind.Status != nil {
			storage[kind.Resource+"/status"] = newStatusStore(store)
		}
	}
	return storage, nil
}

func newStore(typer runtime.ObjectTyper, options generic.RESTOptionsGetter, kind Kind) (*Store, error) {
	writes := strategy{ObjectTyper: typer, NameGenerator: names.SimpleNameGenerator, kind: kind}
	store := &genericregistry.Store{
		NewFunc:                   kind.New,
		NewListFunc:               kind.NewList,
		DefaultQualifiedResource:  policy.Resource(kind.Resource),
		SingularQualifiedResource: policy.Resource(kind.Singular),
		CreateStrategy:            writes,
		UpdateStrategy:            writes,
		DeleteStrategy:            writes,
		ResetFieldsStrategy:       writes,
		TableConvertor:            tableConvertor{kind: kind},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: salvaging{options, kind}}); err != nil {
		return nil, err
	}
	return &Store{Store: store, kind: kind}, nil
}

// Create stores an object, or tells on a dry run what it would do.
func (s *Store) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	created, err := s.Store.Create(ctx, obj, validate, options)
	if err == nil && dryrun.IsDryRun(options.DryRun) {
		s.forecast(ctx, created)
	}
	return created, err
}

// Update changes an object, or tells on a dry run what it would do then.
func (s *Store) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	forceAllowCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	updated, created, err := s.Store.Update(ctx, name, objInfo, createValidation, updateValidation, forceAllowCreate, options)
	if err == nil && dryrun.IsDryRun(options.DryRun) {
		s.forecast(ctx, updated)
	}
	return updated, created, err
}

func (s *Store) forecast(ctx context.Context, obj runtime.Object) {
	if s.kind.Forecast == nil {
		return
	}
	for _, text := range s.kind.Forecast(ctx, obj) {
		warning.AddWarning(ctx, "", text)
	}
}

// StatusStore serves the status subresource of a kind: read, update and patch.
type StatusStore struct {
	// store is not embedded: a subresource is neither listed, created nor deleted.
	store *genericregistry.Store
}

func newStatusStore(parent *Store) *StatusStore {
	store := *parent.Store
	writes := statusStrategy{strategy{ObjectTyper: parent.CreateStrategy, NameGenerator: names.SimpleNameGenerator, kind: parent.kind}}
	store.UpdateStrategy = writes
	store.ResetFieldsStrategy = writes
	return &StatusStore{store: &store}
}

// New returns an empty object of the kind.
func (s *StatusStore) New() runtime.Object { return s.store.New() }

// Destroy leaves the storage to the Store that shares it.
func (*StatusStore) Destroy() {}

// Get reads the object.
func (s *StatusStore) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

// Update writes the status of an existing object.
func (s *StatusStore) Update(ctx context.Context, name string, objInfo rest.UpdatedObjectInfo,
	createValidation rest.ValidateObjectFunc, updateValidation rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	// A status is never the beginning of an object, whatever the caller allows.
	return s.store.Update(ctx, name, objInfo, createValidation, updateValidation, false, options)
}

// GetResetFields names the fields that a write of the status does not own.
func (s *StatusStore) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// ConvertToTable prints the object as the main resource does.
func (s *StatusStore) ConvertToTable(ctx context.Context, obj, tableOptions runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, obj, tableOptions)
}
