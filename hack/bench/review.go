// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
)

// review is a question that is asked again and again, each time with another uid
// and without white space, as API servers write it. It is safe for concurrent use.
type review struct {
	before, after []byte // what stands before and after the text of the uid
	asked         atomic.Uint64
}

func readReview(file string) (*review, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r, err := newReview(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

func newReview(body []byte) (*review, error) {
	var in admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if in.Request == nil || in.Request.UID == "" {
		return nil, fmt.Errorf("is no AdmissionReview with a request and its uid")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return nil, err
	}
	uid := strconv.Quote(string(in.Request.UID))
	if n := bytes.Count(compact.Bytes(), []byte(uid)); n != 1 {
		return nil, fmt.Errorf("the uid %s is there %d times: give the review one that stands nowhere else", uid, n)
	}
	before, after, _ := bytes.Cut(compact.Bytes(), []byte(uid))
	return &review{before: before, after: after}, nil
}

// next returns the body and the uid of the next request. Uids have one length.
func (r *review) next() (body []byte, uid string) {
	uid = fmt.Sprintf("00000000-0000-4000-8000-%012x", r.asked.Add(1))
	body = make([]byte, 0, len(r.before)+len(uid)+2+len(r.after))
	body = append(body, r.before...)
	body = strconv.AppendQuote(body, uid)
	return append(body, r.after...), uid
}
