// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

const (
	maxTokenFileBytes = 16 << 20
	// readableByOthers are the permissions that a file of secrets should not have.
	readableByOthers = 0o007
)

// Users are those whom a standalone server knows beside the holders of
// certificates of its own authority. The zero value is nobody. What they may do
// is said by the RBAC objects of the cluster; the groups are taken at their word,
// system:masters included.
type Users struct {
	// ClientCA signs certificates of users, by common name and organizations. It
	// is followed when it can change. Nil means none.
	ClientCA dynamiccertificates.CAContentProvider
	// Tokens knows bearer tokens. Nil means none.
	Tokens authenticator.Token
}

// LoadUsers reads the files of the flags --client-ca-file and --token-auth-file,
// which mean what they mean to kube-apiserver; an empty name means no file. The
// bundle of authorities is read again when the file changes, once the server
// runs. The tokens are read once.
func LoadUsers(ctx context.Context, clientCAFile, tokenAuthFile string) (Users, error) {
	var users Users
	if clientCAFile != "" {
		authority, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca-bundle", clientCAFile)
		if err != nil {
			return Users{}, fmt.Errorf("--client-ca-file: %w", err)
		}
		users.ClientCA = authority
	}
	if tokenAuthFile != "" {
		tokens, err := loadTokens(ctx, tokenAuthFile)
		if err != nil {
			return Users{}, fmt.Errorf("--token-auth-file: %w", err)
		}
		users.Tokens = tokenfile.New(tokens)
	}
	return users, nil
}

func loadTokens(ctx context.Context, path string) (map[string]*user.DefaultInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&readableByOthers != 0 {
		klog.FromContext(ctx).Info("Every user of this machine may use the file of tokens; take the permission away with chmod o=", "file", path)
	}
	bounded := &io.LimitedReader{R: file, N: maxTokenFileBytes + 1}
	tokens, err := readTokens(bounded)
	if bounded.N == 0 {
		return nil, fmt.Errorf("%s: the file has more than %d bytes; remove tokens that nobody uses", path, maxTokenFileBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tokens, nil
}

// readTokens reads the format of
// k8s.io/apiserver/pkg/authentication/token/tokenfile. It refuses what that only
// warns of or drops in silence, an empty or repeated token and a further column,
// and what looks like something else than it is: somebody would not be whom the
// file says. No error shows a token.
func readTokens(from io.Reader) (map[string]*user.DefaultInfo, error) {
	tokens, lines := map[string]*user.DefaultInfo{}, map[string]int{}
	reader := csv.NewReader(from)
	reader.FieldsPerRecord = -1
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return tokens, nil
		}
		var fault *csv.ParseError
		if errors.As(err, &fault) {
			return nil, fmt.Errorf("line %d, column %d: %w", fault.Line, fault.Column, fault.Err)
		}
		if err != nil {
			return nil, err
		}
		line, _ := reader.FieldPos(0)
		token, holder, err := readToken(record)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if first, taken := lines[token]; taken {
			return nil, fmt.Errorf("line %d: the token is that of line %d too; give each user a token of their own", line, first)
		}
		tokens[token], lines[token] = holder, line
	}
}

func readToken(record []string) (string, *user.DefaultInfo, error) {
	const format = `token,user,uid,"group1,group2", the groups may be left out`
	switch {
	case len(record) < 3:
		return "", nil, fmt.Errorf("%d columns are too few; write %s", len(record), format)
	case len(record) > 4:
		return "", nil, fmt.Errorf("%d columns are too many, several groups need quotes; write %s", len(record), format)
	case record[0] == "":
		return "", nil, errors.New("the token is empty; write " + format)
	case strings.HasPrefix(record[0], "#"):
		return "", nil, errors.New("the file has no comments, and a token that begins with # looks like one; remove the line or take another token")
	case record[1] == "":
		return "", nil, errors.New("the user is empty; write " + format)
	}
	token, holder := record[0], &user.DefaultInfo{Name: record[1], UID: record[2]}
	if len(record) == 4 && record[3] != "" {
		holder.Groups = strings.Split(record[3], ",")
	}
	if err := checkText("the token", token); err != nil {
		return "", nil, err
	}
	return token, holder, checkHolder(holder)
}

// checkHolder refuses whom nobody may claim to be, too: an anonymous caller is
// known by having no credentials.
func checkHolder(holder *user.DefaultInfo) error {
	if err := checkText("the user", holder.Name); err != nil {
		return err
	}
	if err := checkText("the uid", holder.UID); err != nil {
		return err
	}
	if holder.Name == user.Anonymous {
		return fmt.Errorf("the user %s is who shows no token; take another name", user.Anonymous)
	}
	for i, group := range holder.Groups {
		if group == "" {
			return fmt.Errorf("group %d of %d is empty; remove it", i+1, len(holder.Groups))
		}
		if err := checkText(fmt.Sprintf("group %d", i+1), group); err != nil {
			return err
		}
		if group == user.AllUnauthenticated {
			return fmt.Errorf("the group %s is of those who show no token; remove it", user.AllUnauthenticated)
		}
	}
	return nil
}

// checkText refuses what cannot be seen in the file, and what no header or no
// RBAC object would have the same.
func checkText(what, text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%s is not UTF-8; write it anew", what)
	}
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			return fmt.Errorf("%s has white space (%U); remove it", what, r)
		case !unicode.IsPrint(r):
			return fmt.Errorf("%s has a character that cannot be seen (%U), as a byte order mark is (U+FEFF); remove it", what, r)
		}
	}
	return nil
}
