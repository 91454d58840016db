# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by what builds programs that are the same bytes wherever they are built: one version of Go
# (go fetches it if it is another), and nothing out of the user's settings of go.
export GOTOOLCHAIN=go1.26.8
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOEXPERIMENT='' GOFIPS140=off GOWORK=off
# shellcheck disable=SC2034 # used where this is sourced
STATIC=(-trimpath -buildvcs=false)
