# The image: the program, root certificates, and what names its user. Nothing in
# it is a shell, and nothing needs a folder that can be written but the state's.
#
#   docker build --build-arg VERSION=v1.2.3 --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) -t ahp-gateway .
#   docker run --read-only --cap-drop=ALL --security-opt=no-new-privileges -p 8787:8787 -v "$PWD/config:/etc/ahp-gateway:ro" ahp-gateway
#
# `go run . image` in deploy/release makes the same image where no engine runs; a
# test there compares the two.
ARG GO_VERSION=1.26.8

# The toolchain's image is pinned by version, not by digest: it makes nothing of
# the final image but the program, and that comes out the same on any machine.
FROM --platform=$BUILDPLATFORM golang:${GO_VERSION}-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=devel
ARG SOURCE_DATE_EPOCH=0
RUN install -d /out/etc/ahp-gateway /out/etc/ssl/certs /out/usr/bin /out/usr/share/licenses/ahp-gateway /out/var/lib \
 && install -d -m 0700 -o 65532 -g 65532 /out/var/lib/ahp-gateway \
 && install -m 0644 deploy/image/etc/passwd deploy/image/etc/group /out/etc/ \
 && install -m 0644 LICENSE /out/usr/share/licenses/ahp-gateway/ \
 && go -C deploy/release run ./roots >/out/etc/ssl/certs/ca-certificates.crt \
 && CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=auto -ldflags "-s -w -X main.version=${VERSION}" -o /out/usr/bin/ahp-gateway ./cmd/ahp-gateway \
 && find /out -exec touch -h -d "@${SOURCE_DATE_EPOCH}" '{}' +

FROM scratch
ARG VERSION=devel
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="ahp-gateway" \
      org.opencontainers.image.description="A gateway for the Agent Hooks Protocol" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/ahp-gateway/ahp-gateway" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
COPY --from=build /out/ /
# The private listener's port is not named: it is for whoever mounts a
# configuration that opens it.
EXPOSE 8787
USER 65532:65532
ENTRYPOINT ["/usr/bin/ahp-gateway"]
CMD ["serve", "--config", "/etc/ahp-gateway/gateway.yaml"]
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s --retries=3 \
  CMD ["/usr/bin/ahp-gateway", "health", "--config", "/etc/ahp-gateway/gateway.yaml"]
