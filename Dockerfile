# The images of Penstock, one per target: edge, operator, console, analytics. `make images` builds them.
#
# BASE is any image with glibc, Python 3.11 or newer as `python3`, its `venv` module, and the programs `groupadd`, `useradd`
# and `find`. Add a digest to pin it.
ARG BASE=docker.io/library/python:3.11.14-slim-bookworm

# Installs packages with a separate pip, so that the environments contain none.
FROM ${BASE} AS pip
# a base image may set another user
USER 0:0
LABEL org.opencontainers.image.vendor="Penstock"
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python3 -m venv /pip && python3 -m venv --without-pip /opt/penstock
COPY requirements/build.txt /requirements/
RUN /pip/bin/pip install --require-hashes --only-binary :all: -r /requirements/build.txt
COPY tools/images/install.sh /usr/local/bin/

FROM pip AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY protos protos
COPY services services
COPY operator operator
RUN /pip/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

# Dependencies first: they change less often than this project's code.
FROM pip AS edge-packages
COPY requirements/edge.txt /requirements/
RUN install.sh /requirements/edge.txt

FROM edge-packages AS edge-environment
COPY --from=wheel /wheels /wheels
RUN install.sh /wheels/*.whl

# the packages of an edge, and those of the console
FROM edge-packages AS console-environment
COPY requirements/console.txt /requirements/
RUN install.sh /requirements/console.txt
COPY --from=wheel /wheels /wheels
# without the command line: a shell in the console's pod must not provide it
RUN install.sh /wheels/*.whl && rm /opt/penstock/bin/penstock

FROM pip AS operator-environment
COPY requirements/operator.txt /requirements/
RUN install.sh /requirements/operator.txt
COPY --from=wheel /wheels /wheels
# without the command line, whose dependencies are not installed
RUN install.sh /wheels/*.whl && rm /opt/penstock/bin/penstock

# PySpark is published only as a source distribution, so a wheel is built here. The job does not use most of it.
FROM pip AS analytics-environment
COPY requirements/analytics.txt /requirements/
RUN /pip/bin/pip wheel --require-hashes --no-deps --no-build-isolation --only-binary :all: --no-binary pyspark \
      --wheel-dir /packages -r /requirements/analytics.txt
COPY tools/images/leave-out.sh tools/images/analytics-unused.txt /usr/local/bin/
# Java fetches the jars beside PySpark's own; this stage is left behind. A base with a private certificate authority must
# have it in /usr/local/share/ca-certificates, from where Debian's Java takes it.
RUN java -version >/dev/null 2>&1 || { apt-get update -qq \
      && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless; }
COPY services/analytics/spark/jars.py services/analytics/spark/jars.lock /jars/
RUN install.sh /packages/*.whl && /opt/penstock/bin/python /jars/jars.py \
 && leave-out.sh /usr/local/bin/analytics-unused.txt
COPY --from=wheel /wheels /wheels
# without the command line, whose dependencies are not installed
RUN install.sh /wheels/*.whl && rm /opt/penstock/bin/penstock

# The common part of all images: an unprivileged user that can only write to /tmp.
FROM ${BASE} AS runtime
USER 0:0
LABEL org.opencontainers.image.vendor="Penstock"
RUN groupadd --gid 10001 penstock \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin penstock \
 && rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow-
# PYTHONSAFEPATH: do not import from the working directory, which may be writable
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1
# remove the pip and setuptools of the base image
RUN find $(python3 -c 'import os, sys; print(*filter(os.path.isdir, [*sys.path, "/usr/share/python-wheels"]))') \
      /usr/local/bin /usr/bin -maxdepth 1 \( -name pip -o -name 'pip-*' -o -name 'pip[0-9]*' -o -name ensurepip \
      -o -name setuptools -o -name 'setuptools-*' -o -name pkg_resources -o -name _distutils_hack \
      -o -name distutils-precedence.pth -o -name wheel -o -name 'wheel-*' \) -exec rm -r {} +
# compile the standard library: without bytecode, each start would compile it again, as the file system is read-only
RUN python3 -m compileall -q --invalidation-mode unchecked-hash -x '/(dist-packages|site-packages|test|tests|idlelib|lib2to3|turtledemo)/' \
      "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
ENV PATH=/opt/penstock/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp
WORKDIR /
USER 10001:10001
STOPSIGNAL SIGTERM
ARG VERSION=0.1.0
LABEL org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"

FROM runtime AS analytics
LABEL org.opencontainers.image.title="penstock-analytics" \
      org.opencontainers.image.description="The analytics job of Penstock: what happened and what died, by Apache Spark"
USER 0:0
# uses the base image's Java if Spark supports its version. Java requires a user name: libnss-wrapper provides one for user
# ids without an entry (services/analytics/spark/nameless.py)
RUN missing=; \
    java -version 2>&1 | grep -q 'version "\(17\|21\)\.' || missing=openjdk-17-jre-headless; \
    ls /usr/lib/*/libnss_wrapper.so >/dev/null 2>&1 || missing="$missing libnss-wrapper"; \
    [ -z "$missing" ] || { \
      apt-get update -qq \
      && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
      && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/* /usr/share/doc/* /usr/share/man/*; }
USER 10001:10001
# the Python of Spark's workers, on drivers and executors
ENV PYSPARK_PYTHON=/opt/penstock/bin/python
COPY --from=analytics-environment /opt/penstock /opt/penstock
# spark-submit requires a file
COPY services/analytics/__main__.py /opt/penstock/analytics.py
ENTRYPOINT ["python", "-m", "services.analytics.spark.pod"]

FROM runtime AS operator
LABEL org.opencontainers.image.title="penstock-operator" \
      org.opencontainers.image.description="Kubernetes operator: Queue, Peer and Redrive resources in a Penstock store"
COPY --from=operator-environment /opt/penstock /opt/penstock
ENTRYPOINT ["python", "-m", "penstock_operator"]

FROM runtime AS console
LABEL org.opencontainers.image.title="penstock-console" \
      org.opencontainers.image.description="The console of Penstock: a web page and an HTTP API for queues, dead letters, edges"
COPY --from=console-environment /opt/penstock /opt/penstock
ENTRYPOINT ["python", "-m", "services.console"]

FROM runtime AS edge
LABEL org.opencontainers.image.title="penstock-edge" \
      org.opencontainers.image.description="The edges of Penstock, and its command line: penstock serve EDGE"
COPY --from=edge-environment /opt/penstock /opt/penstock
ENTRYPOINT ["penstock"]
