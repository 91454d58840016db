#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the systems that pcn is built for, as GOOS/GOARCH.
printf '%s\n' linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
