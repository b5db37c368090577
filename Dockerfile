# Copyright The Portcullis Authors.
# SPDX-License-Identifier: Apache-2.0

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /out/ ./cmd/portcullis-apiserver

FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/portcullis-apiserver /portcullis-apiserver
USER 65532:65532
ENTRYPOINT ["/portcullis-apiserver"]
