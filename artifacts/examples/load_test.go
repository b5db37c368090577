// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/portcullis-dev/portcullis/pkg/apis/policy/v1alpha1"
)

const (
	readmeFile   = "README.md"
	policiesFile = "policies.yaml"
	clusterFile  = "cluster.yaml"
	// previewFile is an AdmissionPreview to try by hand.
	previewFile = "preview.yaml"
	// objectsFolder holds what a server reads with --objects, one or more
	// manifests; its files are part of the cluster of the example.
	objectsFolder = "objects"
	casePrefix    = "case-"
	refusedPrefix = "refused-"
)

// example is one folder with a policies.yaml.
type example struct {
	// name is the path of the folder, for example expressions/expiry.
	name     string
	policies []runtime.RawExtension
	// cluster holds the objects of the folder and of the folders above it.
	cluster  []runtime.RawExtension
	cases    []testCase
	refusals []refusal
}

// testCase is a request and what the policies of its example make of it.
type testCase struct {
	name    string
	request v1alpha1.PreviewRequest
	want    verdict
}

// verdict is what a preview answers. What a case leaves out must be empty.
type verdict struct {
	Allowed bool `json:"allowed"`
	// Code, Reason and Message are those of status.result, of a denied request.
	Code             int32               `json:"code,omitempty"`
	Reason           metav1.StatusReason `json:"reason,omitempty"`
	Message          string              `json:"message,omitempty"`
	Warnings         []string            `json:"warnings,omitempty"`
	AuditAnnotations map[string]string   `json:"auditAnnotations,omitempty"`
	// Object is that of the request after all mutation, where it changes.
	Object *runtime.RawExtension `json:"object,omitempty"`
}

// refusal is an object that must be refused when it is written.
type refusal struct {
	name string
	want refusedWith
	// object is JSON.
	object []byte
}

// refusedWith is the answer to the write.
type refusedWith struct {
	Code int32 `json:"code"`
	// Message is a part of the message.
	Message string `json:"message"`
}

// loadExamples reads every folder below root, root included. A folder that holds
// only a README, perhaps a cluster.yaml, and folders is a group and no example.
func loadExamples(root string) ([]example, error) {
	var examples []example
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == objectsFolder {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(dir, readmeFile)); err != nil {
			return err
		}
		group, err := isGroup(dir)
		if err != nil || group {
			return err
		}
		ex, err := loadExample(root, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		examples = append(examples, ex)
		return nil
	})
	return examples, err
}

func isGroup(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	group := false
	for _, entry := range entries {
		switch name := entry.Name(); {
		case entry.IsDir() && name != objectsFolder:
			group = true
		case name == policiesFile, strings.HasPrefix(name, casePrefix), strings.HasPrefix(name, refusedPrefix):
			return false, nil
		}
	}
	return group, nil
}

func loadExample(root, dir string) (example, error) {
	name, err := filepath.Rel(root, dir)
	if err != nil {
		return example{}, err
	}
	ex := example{name: filepath.ToSlash(name)}
	if ex.policies, err = readObjects(filepath.Join(dir, policiesFile)); err != nil {
		return example{}, err
	}
	if ex.cluster, err = loadCluster(root, ex.name); err != nil {
		return example{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return example{}, err
	}
	for _, entry := range entries {
		if err := ex.load(filepath.Join(dir, entry.Name())); err != nil {
			return example{}, fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	return ex, nil
}

// load adds the case or the refusal that a file holds. It fails on a manifest
// that nothing would read.
func (ex *example) load(file string) error {
	base := filepath.Base(file)
	stem, manifest := strings.CutSuffix(base, ".yaml")
	if !manifest || base == policiesFile || base == clusterFile || base == previewFile {
		return nil
	}
	if name, ok := strings.CutPrefix(stem, casePrefix); ok {
		c, err := loadCase(name, file)
		ex.cases = append(ex.cases, c)
		return err
	}
	if name, ok := strings.CutPrefix(stem, refusedPrefix); ok {
		r, err := loadRefusal(name, file)
		ex.refusals = append(ex.refusals, r)
		return err
	}
	return errors.New("is neither a case nor a refusal")
}

// loadCluster reads the cluster.yaml of the example and of each folder above
// it, and the example's folder of objects. None is required.
func loadCluster(root, name string) ([]runtime.RawExtension, error) {
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(name), objectsFolder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for folder := name; ; folder = path.Dir(folder) {
		files = append(files, filepath.Join(root, filepath.FromSlash(folder), clusterFile))
		if folder == "." {
			break
		}
	}
	var objects []runtime.RawExtension
	for _, file := range files {
		more, err := readObjects(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

func loadCase(name, file string) (testCase, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return testCase{}, err
	}
	var content struct {
		Request v1alpha1.PreviewRequest `json:"request"`
		Want    verdict                 `json:"want"`
	}
	if err := yaml.UnmarshalStrict(data, &content); err != nil {
		return testCase{}, err
	}
	return testCase{name: name, request: content.Request, want: content.Want}, nil
}

func loadRefusal(name, file string) (refusal, error) {
	documents, err := readDocuments(file)
	if err != nil {
		return refusal{}, err
	}
	if len(documents) != 2 {
		return refusal{}, fmt.Errorf("holds %d documents, needs two: want and the object", len(documents))
	}
	var head struct {
		Want refusedWith `json:"want"`
	}
	if err := yaml.UnmarshalStrict(documents[0], &head); err != nil {
		return refusal{}, err
	}
	object, err := yaml.YAMLToJSONStrict(documents[1])
	if err != nil {
		return refusal{}, err
	}
	return refusal{name: name, want: head.Want, object: object}, nil
}

// readObjects reads the YAML documents of a file as JSON.
func readObjects(file string) ([]runtime.RawExtension, error) {
	documents, err := readDocuments(file)
	if err != nil {
		return nil, err
	}
	objects := make([]runtime.RawExtension, 0, len(documents))
	for i, document := range documents {
		object, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", file, i+1, err)
		}
		objects = append(objects, runtime.RawExtension{Raw: object})
	}
	return objects, nil
}

func readDocuments(file string) ([][]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		documents = append(documents, document)
	}
}
