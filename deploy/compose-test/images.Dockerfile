# Images under the names that docker-compose.yml and the Dockerfile use, made of Debian's packages
# where no registry can be reached. scripts/compose-images.sh builds them. ClickHouse is not
# packaged, so the image "clickhouse" runs the project's embedded engine in its place.

FROM debian:bookworm-slim AS golang
ARG GOPROXY
ENV PATH=/usr/local/go/bin:$PATH GOPATH=/go GOTOOLCHAIN=local GOPROXY=$GOPROXY
COPY . /usr/local/go

FROM debian:bookworm-slim AS redis
RUN apt-get update && apt-get install -y --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/*
VOLUME /data

FROM debian:bookworm-slim AS nginx
RUN apt-get update && apt-get install -y --no-install-recommends nginx-light wget && rm -rf /var/lib/apt/lists/* \
 && useradd --system --no-create-home --shell /usr/sbin/nologin nginx

FROM debian:bookworm-slim AS libchdb
RUN apt-get update && apt-get install -y --no-install-recommends wget && rm -rf /var/lib/apt/lists/*
COPY . /usr/local/lib/libchdb

FROM libchdb:local AS clickhouse
COPY --from=companyscore:local /usr/local/bin/companyscore /usr/local/bin/companyscore
ENV COMPANYSCORE_LIBCHDB=/usr/local/lib/libchdb/libchdb.so
VOLUME /var/lib/clickhouse
ENTRYPOINT ["sh", "-c", "COMPANYSCORE_PASSWORD=$CLICKHOUSE_SERVICE_PASSWORD COMPANYSCORE_ANALYST_PASSWORD=$CLICKHOUSE_ANALYST_PASSWORD exec companyscore clickhouse --path /var/lib/clickhouse/engine --listen 0.0.0.0:8123"]
