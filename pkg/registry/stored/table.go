// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

var _ rest.TableConvertor = tableConvertor{}

// tableConvertor prints objects and lists of one kind as rows of its columns.
type tableConvertor struct {
	kind Kind
}

// ConvertToTable answers a request for a meta.k8s.io/v1 Table.
func (c tableConvertor) ConvertToTable(_ context.Context, obj, tableOptions runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	headers, err := wantsHeaders(tableOptions)
	if err != nil {
		return nil, err
	}
	if headers {
		table.ColumnDefinitions = c.kind.Columns
	}

	addRow := func(item runtime.Object) error {
		cells, err := c.kind.Cells(item)
		if err != nil {
			return fmt.Errorf("row of %s: %w", c.kind.Resource, err)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: item}})
		return nil
	}
	if !meta.IsListType(obj) {
		if object, err := meta.CommonAccessor(obj); err == nil {
			table.ResourceVersion = object.GetResourceVersion()
		}
		return table, addRow(obj)
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
		table.RemainingItemCount = list.GetRemainingItemCount()
	}
	return table, meta.EachListItem(obj, addRow)
}

func wantsHeaders(options runtime.Object) (bool, error) {
	switch typed := options.(type) {
	case nil:
		return true, nil
	case *metav1.TableOptions:
		return typed == nil || !typed.NoHeaders, nil
	default:
		return false, fmt.Errorf("table options are a %T, want a TableOptions", options)
	}
}
