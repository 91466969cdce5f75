# syntax=docker/dockerfile:1
# One image for every process of the fleet; the compose file (or your platform) says which command to run.

FROM python:3.13-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/homing
WORKDIR /src
COPY requirements.lock .
RUN /opt/homing/bin/pip install --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY homing homing
COPY jobs jobs
COPY webhooks webhooks
COPY reconciler reconciler
RUN /opt/homing/bin/pip install --no-deps --no-build-isolation .

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/homing --create-home homing
COPY --from=build /opt/homing /opt/homing
ENV PATH=/opt/homing/bin:$PATH PYTHONUNBUFFERED=1 HOMING_DATA_DIR=/var/lib/homing HOMING_ENV=production
USER homing
WORKDIR /var/lib/homing
EXPOSE 8000
CMD ["homing", "--help"]
