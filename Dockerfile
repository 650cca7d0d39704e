# One image for every role; the role is the first argument.
#
# The image has no embedded ClickHouse engine: in containers the roles use real
# servers. `companyscore up` and `companyscore clickhouse` do not run in it.
#
# The base images have tags and no digests. docs/operations.md shows how to pin them.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG COMMIT=
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X companyscore/internal/release.version=$VERSION -X companyscore/internal/release.commit=$COMMIT" -o /out/companyscore .

FROM debian:bookworm-slim
# ca-certificates: for sources and stores with TLS. wget: for health checks.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates wget \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin companyscore
COPY --from=build /out/companyscore /usr/local/bin/companyscore
USER 10001
WORKDIR /tmp
# Other containers cannot connect to loopback.
ENV COMPANYSCORE_LISTEN=0.0.0.0:8080 \
    COMPANYSCORE_ADMIN_LISTEN=0.0.0.0:8081 \
    COMPANYSCORE_LOG_FORMAT=json
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
ARG VERSION=dev
ARG COMMIT=
LABEL org.opencontainers.image.title="companyscore" \
      org.opencontainers.image.description="Score companies by their domain names" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
ENTRYPOINT ["/usr/local/bin/companyscore"]
CMD ["--help"]
