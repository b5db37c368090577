// Copyright The Portcullis Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

const (
	// tick is the unit of CPU time in /proc: USER_HZ is 100 on all platforms of Go.
	tick = 10 * time.Millisecond
	// minDuration makes a tick a small part of a round.
	minDuration = 500 * time.Millisecond

	// The fields of /proc/PID/stat, as proc_pid_stat(5) numbers them.
	fieldState = 3
	fieldUtime = 14
	fieldStime = 15
	fieldRSS   = 24
)

// usage is what the system has charged a process with.
type usage struct {
	cpu      time.Duration // in user and system mode, by all threads that there ever were
	resident int64         // bytes
}

func readUsage(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("ask for the CPU time of process %d: %w", pid, err)
	}
	u, err := parseStat(stat)
	if err != nil {
		return usage{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
	}
	return u, nil
}

// parseStat reads the fields behind the name of the program, which may hold
// spaces and parentheses.
func parseStat(stat []byte) (usage, error) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return usage{}, errors.New("holds no name of a program")
	}
	fields := bytes.Fields(stat[end+1:])
	numbers := map[int]int64{fieldUtime: 0, fieldStime: 0, fieldRSS: 0}
	for field := range numbers {
		index := field - fieldState
		if index >= len(fields) {
			return usage{}, fmt.Errorf("has no field %d", field)
		}
		number, err := strconv.ParseInt(string(fields[index]), 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("field %d: %w", field, err)
		}
		numbers[field] = number
	}
	return usage{
		cpu:      time.Duration(numbers[fieldUtime]+numbers[fieldStime]) * tick,
		resident: numbers[fieldRSS] * int64(os.Getpagesize()),
	}, nil
}
