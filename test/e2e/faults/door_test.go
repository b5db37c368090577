// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/portcullis-dev/portcullis/test/cluster"
)

// reviewTimeout is how long a review is waited for, as with the registration.
const reviewTimeout = 10 * time.Second

// door is the direct review door of one replica, at its own port.
type door struct {
	url  string
	http *http.Client
}

// doorOf asks with the client certificate of the administrator.
func (s *scene) doorOf(replica *cluster.Replica) *door {
	s.Helper()
	config := rest.CopyConfig(s.Config)
	config.CAData, config.Insecure = nil, true // who answers is no question here
	config.Timeout = reviewTimeout
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.Fatal(err)
	}
	return &door{url: "https://" + replica.Address + "/admission/v1/validate?timeout=10s", http: client}
}

// doors are those of all replicas.
func (s *scene) doors() []*door {
	s.Helper()
	var doors []*door
	for _, replica := range s.live() {
		doors = append(doors, s.doorOf(replica))
	}
	return doors
}

// ask returns what a review of the creation of a ConfigMap is answered: the message
// of the denial, or "" when it is allowed.
func (d *door) ask(ctx context.Context, object *corev1.ConfigMap) (denial string, err error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       "1",
			Operation: admissionv1.Create,
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Name:      object.Name,
			Namespace: object.Namespace,
			Object:    runtime.RawExtension{Raw: raw},
		},
	})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := d.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	return answer(response)
}

func answer(response *http.Response) (denial string, err error) {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("HTTP %d: %s", response.StatusCode, body)
	}
	review := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, review); err != nil {
		return "", err
	}
	switch {
	case review.Response == nil:
		return "", fmt.Errorf("a review without a response: %s", body)
	case review.Response.Allowed:
		return "", nil
	case review.Response.Result == nil || review.Response.Result.Message == "":
		return "", fmt.Errorf("a denial without a message: %s", body)
	}
	return review.Response.Result.Message, nil
}

// siege asks one replica again and again, from before it can answer, whether bad
// ConfigMaps are allowed.
type siege struct {
	stop    func()
	working sync.WaitGroup

	mu       sync.Mutex
	unheard  int // asked in vain
	denied   int
	admitted int
	wrong    []string // what else was answered
}

// besiege asks until end is called.
func (s *scene) besiege(replica *cluster.Replica, policies int) *siege {
	s.Helper()
	d := s.doorOf(replica)
	ctx, cancel := context.WithCancel(s.Context())
	b := &siege{stop: cancel}
	b.working.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// All of them are asked about, from the one that was stored last.
			number := policies - 1 - i%policies
			denial, err := d.ask(ctx, s.configMap("besieged", badKind(number)))
			if ctx.Err() == nil {
				b.note(denial, s.denial(number), err)
			}
		}
	})
	return b
}

func (b *siege) note(denial, want string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil:
		b.unheard++
	case denial == "":
		b.admitted++
	case denial == want:
		b.denied++
	default:
		b.wrong = append(b.wrong, denial)
	}
}

// end stops asking.
func (b *siege) end() {
	b.stop()
	b.working.Wait()
}

func (*siege) pause() { time.Sleep(pollInterval) }

// heard says that there was an answer.
func (b *siege) heard() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.denied > 0
}
