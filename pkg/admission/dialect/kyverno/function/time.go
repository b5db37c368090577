// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/portcullis-dev/portcullis/pkg/admission/dialect/kyverno/jmespath"
)

// times returns the functions of points in time, which are texts as in RFC 3339, and
// durations, which are texts as in Go. Now is when the request was received, always in
// UTC. The abbreviations of time zones other than UTC have no meaning, wherever the
// server stands.
func times() []jmespath.Function {
	return []jmespath.Function{
		{Name: "time_now", Call: now},
		{Name: "time_now_utc", Call: now},
		ofTexts("time_since", 3, since),
		ofTexts("time_parse", 2, parseTime),
		withTimes("time_utc", 1, func(at []time.Time) (any, error) {
			return at[0].UTC().Format(time.RFC3339), nil
		}),
		withTimes("time_to_cron", 1, func(at []time.Time) (any, error) {
			t := at[0]
			return fmt.Sprintf("%d %d %d %d %d", t.Minute(), t.Hour(), t.Day(), t.Month(), t.Weekday()), nil
		}),
		withTimes("time_diff", 2, func(at []time.Time) (any, error) { return at[1].Sub(at[0]).String(), nil }),
		withTimes("time_before", 2, func(at []time.Time) (any, error) { return at[0].Before(at[1]), nil }),
		withTimes("time_after", 2, func(at []time.Time) (any, error) { return at[0].After(at[1]), nil }),
		withTimes("time_between", 3, func(at []time.Time) (any, error) {
			return at[0].After(at[1]) && at[0].Before(at[2]), nil
		}),
		withDuration("time_add", time.Time.Add),
		withDuration("time_truncate", time.Time.Truncate),
	}
}

// withTimes returns a function of points in time.
func withTimes(name string, count int, call func(at []time.Time) (any, error)) jmespath.Function {
	return ofTexts(name, count, func(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
		at := make([]time.Time, len(texts))
		for i, text := range texts {
			var err error
			if at[i], err = parseAs(time.RFC3339, text); err != nil {
				return nil, err
			}
		}
		return call(at)
	})
}

// withDuration returns a function of a point in time and a duration.
func withDuration(name string, move func(time.Time, time.Duration) time.Time) jmespath.Function {
	return ofTexts(name, 2, func(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
		at, err := parseAs(time.RFC3339, texts[0])
		if err != nil {
			return nil, err
		}
		duration, err := time.ParseDuration(texts[1])
		if err != nil {
			return nil, fmt.Errorf("%s is not a duration", quoted(texts[1]))
		}
		return move(at, duration).Format(time.RFC3339), nil
	})
}

func now(_ context.Context, run *jmespath.Run, _ []any) (any, error) {
	return run.Now.UTC().Format(time.RFC3339), nil
}

// since returns the duration between two points in time that have the given layout, or
// that of RFC 3339 when it is empty. Without an end it is now.
func since(_ context.Context, run *jmespath.Run, texts []string) (any, error) {
	layout, begin, end := texts[0], texts[1], texts[2]
	if layout == "" {
		layout = time.RFC3339
	}
	from, err := parseAs(layout, begin)
	if err != nil {
		return nil, err
	}
	to := run.Now
	if end != "" {
		if to, err = parseAs(layout, end); err != nil {
			return nil, err
		}
	}
	return to.Sub(from).String(), nil
}

// parseTime returns a point in time of a layout in that of RFC 3339. A layout that is a
// whole number says that the time is in seconds since 1970.
func parseTime(_ context.Context, _ *jmespath.Run, texts []string) (any, error) {
	layout, text := texts[0], texts[1]
	if _, err := strconv.ParseInt(layout, 10, 64); err == nil {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not a number of seconds", quoted(text))
		}
		return time.Unix(seconds, 0).UTC().Format(time.RFC3339), nil
	}
	at, err := parseAs(layout, text)
	if err != nil {
		return nil, err
	}
	return at.Format(time.RFC3339), nil
}

// parseAs parses a point in time. The place of the server has no say in it.
func parseAs(layout, text string) (time.Time, error) {
	const most = 1000
	if len(layout) > most || len(text) > most {
		return time.Time{}, fmt.Errorf("a time or its layout is longer than %d characters", most)
	}
	at, err := time.ParseInLocation(layout, text, time.UTC)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is not a time of the layout %s", quoted(text), quoted(layout))
	}
	return at, nil
}
