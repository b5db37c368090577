// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// UndecodableAnnotation marks an object that stands for a stored one that cannot
// be decoded, and says why. Only the storage sets it, as it reads: it is taken
// from whatever a client writes.
const UndecodableAnnotation = "policy.portcullis.dev/undecodable"

// maxDamageText bounds what is said about a damaged object, in bytes.
const maxDamageText = 1024

const (
	undecodable = "the stored object cannot be decoded: "
	howToMend   = ": replace the whole object (kubectl replace) or delete it"
)

// Damage returns an error when obj, as it was read from the storage, is only what
// can be read of an object that cannot be decoded. Its spec must not be taken for
// the whole of it.
func Damage(obj runtime.Object) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	if text, marked := accessor.GetAnnotations()[UndecodableAnnotation]; marked {
		return errors.New(undecodable + text)
	}
	return nil
}

// unmark takes the mark of damage from what a client writes.
func unmark(obj metav1.Object) {
	annotations := obj.GetAnnotations()
	if _, marked := annotations[UndecodableAnnotation]; !marked {
		return
	}
	delete(annotations, UndecodableAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	obj.SetAnnotations(annotations)
}

// refuseDamage keeps what is shown of a damaged object from being stored as if it
// were the whole.
func refuseDamage(damage error) field.ErrorList {
	return field.ErrorList{field.Forbidden(field.NewPath("metadata", "annotations").Key(UndecodableAnnotation),
		damage.Error()+howToMend+"; what replaces it must not have this annotation")}
}

// replacesDamage says whether obj is the whole of an object of which old is what
// can be read. A patch, server-side apply included, is not, whatever it changes:
// it is made of what is shown. Nor is an object that has the mark still, since its
// writer has read it, or one with the spec that is shown.
func (s strategy) replacesDamage(ctx context.Context, obj, old runtime.Object) bool {
	request, known := genericapirequest.RequestInfoFrom(ctx)
	return known && request.Verb == "update" && Damage(obj) == nil && !s.kind.Spec.equal(obj, old)
}

// damagedConditions are those of a policy that cannot be decoded. matches says that
// what it matches can be read. Nobody writes them, since a write would replace what is
// stored; so nobody knows since when they hold.
func damagedConditions(generation int64, matches bool, failurePolicy, damage, advice string) []metav1.Condition {
	condition := metav1.Condition{Status: metav1.ConditionFalse, ObservedGeneration: generation}
	compiled, ready := condition, condition
	compiled.Type, compiled.Reason = "Compiled", "CannotDecode"
	compiled.Message = undecodable + damage + advice
	matched := "each request that it may match"
	if !matches {
		matched = "what it matches cannot be read either, and every request"
	}
	ready.Type, ready.Reason = "Ready", "NotCompiled"
	ready.Message = fmt.Sprintf("it cannot be decoded: %s is handled by its failurePolicy %s", matched, failurePolicy)
	return []metav1.Condition{compiled, ready}
}

// printable returns text without what could disturb a terminal, cut to a number
// of bytes.
func printable(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	const cut = " ..."
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(cut)], "") + cut
}
