// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package stored

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
)

// impossibleKeyError says that something has the key of an object in etcd which
// no object can have. It counts as damaged whatever it is, since no client can
// name it to replace or delete it.
type impossibleKeyError struct{ key string }

// Error names the key, and the way to remove it.
func (e *impossibleKeyError) Error() string {
	return "no object of the API can have its key: remove it with etcdctl del " + shellQuoted(e.key)
}

// KeyName returns the name under which the object of a key is served, and whether
// an object of the API can have the key, which is what follows the prefix of the
// kind in etcd. One that none can have still has to be listed, so what cannot be
// part of a path, or of JSON, is replaced.
func (k Kind) KeyName(key string) (name types.NamespacedName, possible bool) {
	if k.Namespaced {
		name.Namespace, key, _ = strings.Cut(key, "/")
	}
	name.Name = key
	if key != "" && utf8.ValidString(key) && len(content.IsPathSegmentName(key)) == 0 {
		return name, true
	}
	name.Name = strings.NewReplacer("/", ":", "%", ":").Replace(strings.ToValidUTF8(key, ":"))
	if name.Name == "" || name.Name == "." || name.Name == ".." {
		name.Name = ":" + name.Name
	}
	return name, false
}

// shellQuoted returns a word of bash that means text and nothing else.
func shellQuoted(text string) string {
	var quoted strings.Builder
	dollar := ""
	for _, b := range []byte(text) {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("/._:%-", b) >= 0:
			quoted.WriteByte(b)
		default:
			dollar = "$"
			fmt.Fprintf(&quoted, `\x%02x`, b)
		}
	}
	return dollar + "'" + quoted.String() + "'"
}
