# Image of `kardia live`: what its extra brings, exactly as locked, and Kardia; no root, no compiler, no Java, no secret.
# It runs with a root that is read-only: tables and state are in the volume at /var/lib/kardia, logs are mounted.
#
#   docker build -f compose/live.Dockerfile -t kardia-live .
#   docker run --read-only --tmpfs /tmp -v kardia:/var/lib/kardia -v /var/log/kafka:/logs:ro -p 127.0.0.1:8765:8765 kardia-live \
#       --tables /var/lib/kardia/tables --request-log /logs/kafka-request.log --log-timezone UTC \
#       --host 0.0.0.0 --serve-everyone-without-a-token
FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7 AS installed
WORKDIR /build
RUN python -m venv /opt/kardia
COPY compose/live.lock compose/live.lock
RUN /opt/kardia/bin/python -m pip install --no-cache-dir --no-deps --require-hashes -r compose/live.lock
COPY pyproject.toml README.md LICENSE ./
COPY cli cli
COPY supervise supervise
COPY live live
COPY api api
COPY spark_jobs spark_jobs
COPY ingest ingest
COPY stores stores
COPY kardia kardia
COPY docs/runbooks docs/runbooks
COPY dashboards dashboards
COPY deploy/systemd deploy/systemd
RUN /opt/kardia/bin/python -m pip install --no-cache-dir --no-deps .
RUN /opt/kardia/bin/python -m pip uninstall --yes pip

FROM python:3.12.11-slim-bookworm@sha256:519591d6871b7bc437060736b9f7456b8731f1499a57e22e6c285135ae657bf7
COPY --from=installed /opt/kardia /opt/kardia
RUN useradd --uid 1000 --create-home --home-dir /var/lib/kardia kardia
USER 1000:1000
ENV HOME=/var/lib/kardia PATH=/opt/kardia/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /var/lib/kardia
ENTRYPOINT ["kardia", "live"]
