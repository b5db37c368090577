// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ignoreExists passes over that an object is there already: a write that failed may
// have been stored.
func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// gone is nil when an object was not found.
func gone(err error) error {
	switch {
	case err == nil:
		return errors.New("it is still there")
	case apierrors.IsNotFound(err):
		return nil
	}
	return err
}

// is5xx says that the server could not do what it was asked.
func is5xx(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
