// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

func TestReadTokens(t *testing.T) {
	const advice = `write token,user,uid,"group1,group2", the groups may be left out`
	tests := []struct {
		name, content string
		want          map[string]*user.DefaultInfo
		err           string
	}{
		{name: "empty", want: map[string]*user.DefaultInfo{}},
		{
			name: "users", content: "abc,jane,1\n\ndef,joe,,\"devs,ops\"\nghi,ann,3,devs\njkl,eve,4,\n",
			want: map[string]*user.DefaultInfo{
				"abc": {Name: "jane", UID: "1"},
				"def": {Name: "joe", Groups: []string{"devs", "ops"}},
				"ghi": {Name: "ann", UID: "3", Groups: []string{"devs"}},
				"jkl": {Name: "eve", UID: "4"},
			},
		},
		{
			name: "names of components, in any script, from another system", content: "abc,system:kube-scheduler,1,\"system:masters,système\"\r\n\"a\"\"b/+=\",\"jane@example.com\",2\r\n",
			want: map[string]*user.DefaultInfo{
				"abc":     {Name: "system:kube-scheduler", UID: "1", Groups: []string{"system:masters", "système"}},
				"a\"b/+=": {Name: "jane@example.com", UID: "2"},
			},
		},
		{name: "byte order mark", content: "\ufeffsecret,jane,1\n", err: "line 1: the token has a character that cannot be seen (U+FEFF), as a byte order mark is (U+FEFF); remove it"},
		{name: "space before the token", content: "abc,jane,1\n secret,joe,2\n", err: "line 2: the token has white space (U+0020); remove it"},
		{name: "space after the token", content: "secret ,jane,1\n", err: "line 1: the token has white space (U+0020); remove it"},
		{name: "space in the token", content: "sec ret,jane,1\n", err: "line 1: the token has white space (U+0020); remove it"},
		{name: "token of two lines", content: "\"sec\nret\",jane,1\n", err: "line 1: the token has white space (U+000A); remove it"},
		{name: "control character in the token", content: "sec\x00ret,jane,1\n", err: "line 1: the token has a character that cannot be seen (U+0000), as a byte order mark is (U+FEFF); remove it"},
		{name: "token that is no text", content: "sec\xffret,jane,1\n", err: "line 1: the token is not UTF-8; write it anew"},
		{name: "space before the user", content: "secret, jane,1\n", err: "line 1: the user has white space (U+0020); remove it"},
		{name: "tab in the user", content: "secret,ja\tne,1\n", err: "line 1: the user has white space (U+0009); remove it"},
		{name: "space before the uid", content: "secret,jane, 1\n", err: "line 1: the uid has white space (U+0020); remove it"},
		{name: "space before a group", content: "secret,jane,1,\"devs, system:masters\"\n", err: "line 1: group 2 has white space (U+0020); remove it"},
		{name: "empty group between others", content: "secret,jane,1,\"devs,,ops\"\n", err: "line 1: group 2 of 3 is empty; remove it"},
		{name: "empty last group", content: "secret,jane,1,\"devs,\"\n", err: "line 1: group 2 of 2 is empty; remove it"},
		{name: "comment", content: "# secret, of, jane\nabc,jane,1\n", err: "line 1: the file has no comments, and a token that begins with # looks like one; remove the line or take another token"},
		{name: "anonymous", content: "secret,system:anonymous,1\n", err: "line 1: the user system:anonymous is who shows no token; take another name"},
		{name: "unauthenticated", content: "secret,jane,1,\"devs,system:unauthenticated\"\n", err: "line 1: the group system:unauthenticated is of those who show no token; remove it"},
		{name: "too few columns", content: "abc,jane,1\nsecret,joe\n", err: "line 2: 2 columns are too few; " + advice},
		{name: "groups without quotes", content: "secret,jane,1,devs,ops\n", err: "line 1: 5 columns are too many, several groups need quotes; " + advice},
		{name: "no token", content: "\n,jane,1\n", err: "line 2: the token is empty; " + advice},
		{name: "no user", content: "secret,,1\n", err: "line 1: the user is empty; " + advice},
		{name: "a token twice", content: "secret,jane,1\nabc,ann,2\nsecret,joe,3\n", err: "line 3: the token is that of line 1 too; give each user a token of their own"},
		{name: "broken quotes", content: "abc,jane,1\nsecret,jo\"e,3\n", err: `line 2, column 10: bare " in non-quoted-field`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := readTokens(strings.NewReader(test.content))
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("got error\n%v\nwant\n%s", err, test.err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v and error %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestLoadUsers(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	broken := file("broken.csv", "abc,jane\n")
	large := file("large.csv", strings.Repeat("\n", maxTokenFileBytes+1))
	noBundle := file("bundle.pem", "no certificate")
	tests := []struct {
		name, authorities, tokens string
		want                      string // in the error
	}{
		{name: "none"},
		{name: "broken tokens", tokens: broken, want: "--token-auth-file: " + broken + ": line 1: 2 columns are too few"},
		{name: "too many tokens", tokens: large, want: "--token-auth-file: " + large + ": the file has more than 16777216 bytes"},
		{name: "no certificates", authorities: noBundle, want: "--client-ca-file: error loading CA bundle for \"client-ca-bundle::" + noBundle},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			users, err := LoadUsers(t.Context(), test.authorities, test.tokens)
			if users != (Users{}) {
				t.Errorf("got %+v, want nobody", users)
			}
			if (err != nil) != (test.want != "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got error\n%v\nwant\n%s", err, test.want)
			}
		})
	}
	for _, flag := range []string{"--client-ca-file", "--token-auth-file"} {
		absent := map[string]string{flag: filepath.Join(dir, "absent")}
		_, err := LoadUsers(t.Context(), absent["--client-ca-file"], absent["--token-auth-file"])
		if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), flag+": ") {
			t.Errorf("%s: got error %v, want that the file is absent", flag, err)
		}
	}
}
