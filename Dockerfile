# The image of every Surefoot process. Its RUN lines are only `python -m venv` and
# `pip install --require-hashes`: a test runs the same two without pulling an image.
FROM python:3.13-slim AS build
COPY requirements/runtime.txt /build/requirements.txt
RUN python -m venv /venv \
 && /venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /build/requirements.txt

FROM python:3.13-slim
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONPATH=/app
COPY --from=build /venv /venv
COPY scoring /app/scoring
COPY extender /app/extender
# Numbers, so that `runAsNonRoot` can be checked without /etc/passwd.
USER 65532:65532
EXPOSE 8888
ENTRYPOINT ["/venv/bin/python", "-m", "extender"]
CMD ["serve", "--bind", "0.0.0.0:8888"]
