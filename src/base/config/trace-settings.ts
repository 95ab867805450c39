// OpenTelemetry trace settings (docs/monitoring.md). The standard OTEL_ variables are used for settings that are set nowhere else.
import { flag, integer, type Kind, text } from "./kinds.ts";
import { optional, setting } from "./setting.ts";

/** The URL can have a path, as those of hosted collectors do. */
const collectorUrl: Kind<URL> = {
  accepts: "an http or https URL without query or credentials, such as http://127.0.0.1:4318",
  placeholder: "URL",
  parse(value) {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) return undefined;
    return url.search + url.hash + url.username + url.password === "" ? url : undefined;
  },
  print: (value) => value.href,
};

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;

/** In the format of OTEL_EXPORTER_OTLP_HEADERS: values are percent-encoded. */
const headerPairs: Kind<Readonly<Record<string, string>>> = {
  accepts: "pairs of name=value, separated by commas, with percent-encoded values",
  placeholder: "HEADERS",
  parse(value) {
    const headers: Record<string, string> = {};
    for (const pair of value.split(",")) {
      const index = pair.indexOf("=");
      const name = pair.slice(0, index).trim();
      const decoded = index < 1 ? undefined : decode(pair.slice(index + 1).trim());
      if (decoded === undefined || !HEADER_NAME.test(name) || !HEADER_VALUE.test(decoded)) return undefined;
      headers[name] = decoded;
    }
    return headers;
  },
  print: (headers) =>
    Object.entries(headers)
      .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
      .join(","),
};

const decode = (value: string): string | undefined => {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
};

export const TRACE_SETTINGS = {
  otlp_endpoint: optional(collectorUrl, {
    group: "Traces",
    help: "The OpenTelemetry collector that receives traces by OTLP over HTTP; /v1/traces is appended.",
    absent: "the variable OTEL_EXPORTER_OTLP_ENDPOINT, else traces are off",
    otherVariable: "OTEL_EXPORTER_OTLP_ENDPOINT",
  }),
  otlp_headers: optional(headerPairs, {
    group: "Traces",
    help: "Headers of each export, such as a key: name=value, separated by commas.",
    absent: "the variable OTEL_EXPORTER_OTLP_HEADERS, else none",
    otherVariable: "OTEL_EXPORTER_OTLP_HEADERS",
    secret: true,
  }),
  otlp_service_name: optional(text, {
    group: "Traces",
    help: "The name of this server in traces (`service.name`).",
    absent: "the variable OTEL_SERVICE_NAME, else slipway",
    otherVariable: "OTEL_SERVICE_NAME",
  }),
  otlp_sample_percent: setting(integer(0, 100), 100, {
    group: "Traces",
    help: "The percentage of traces to keep. Callers that send `traceparent` decide for their own traces.",
  }),
  otlp_propagate_to_models: setting(flag, false, {
    group: "Traces",
    help: "Whether to send `traceparent` to model servers, so that their spans join the trace. Leave this off for providers outside of your network.",
  }),
} as const;
