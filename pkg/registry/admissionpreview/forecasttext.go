// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionpreview

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apiserver/pkg/admission"
)

// line says what became of the objects, or nothing when there are none.
func (t *tally) line(what selection) string {
	judged := t.judged()
	remaining := fmt.Sprintf("%d", t.remaining)
	if t.unsure {
		remaining = "at least " + remaining
	}
	switch {
	case judged+t.remaining == 0:
		return ""
	case judged == 0:
		return fmt.Sprintf("%s existing %s were not judged in time", remaining, what.resource())
	}
	of := fmt.Sprintf("%d", judged)
	if t.truncated {
		of = "the first " + of
	}
	on := ""
	if what.operation != admission.Create {
		on = " on " + string(what.operation)
	}
	var parts []string
	for _, part := range []struct {
		of   grade
		text string
	}{
		{gradeDenied, "would be denied" + on},
		{gradeError, "would be denied" + on + " because a policy cannot be judged"},
		{gradeWarned, "would get a warning" + on},
		{gradeAudited, "would be noted in the audit log" + on},
		{gradeIgnored, "cannot be judged, which failurePolicy Ignore lets pass"},
	} {
		if count := t.counts[part.of]; count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, part.text))
		}
	}
	existing := fmt.Sprintf(" of %s existing %s ", of, what.resource())
	var line string
	if len(parts) == 0 {
		line = "none" + existing + "would be denied" + on
	} else {
		first := strings.SplitN(parts[0], " ", 2)
		parts[0] = first[0] + existing + first[1]
		line = strings.Join(parts, ", ") + t.first()
	}
	switch {
	case t.remaining > 0 && t.heavy:
		line += fmt.Sprintf("; %s more were not judged, for these are large", remaining)
	case t.remaining > 0:
		line += fmt.Sprintf("; %s more were not judged in time", remaining)
	}
	return line
}

// first names the first object that does not pass, with what a policy says of it.
func (t *tally) first() string {
	kept := t.kept()
	if len(kept) == 0 {
		return ""
	}
	name := kept[0].name
	if kept[0].namespace != "" {
		name = kept[0].namespace + "/" + name
	}
	text := kept[0].message
	if len(kept[0].evaluations) > 0 {
		text = kept[0].evaluations[0].Message // the policy is known
	}
	if text == "" {
		return ", the first: " + name
	}
	return ", the first: " + name + ": " + text
}

// fit makes lines that a Warning header can carry, each cut to its share of all that
// there is room for.
func fit(lines []string) []string {
	fitting := make([]string, len(lines))
	for i, text := range lines {
		text = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(text, "?"))
		fitting[i] = shorten(text, min(cutWarningsToRunes, maxForecastText/len(lines)))
	}
	return fitting
}

// shorten cuts a text and shows that it did.
func shorten(text string, toRunes int) string {
	if short := cut(text, toRunes); short != text {
		return cut(text, toRunes-3) + "..."
	}
	return text
}
