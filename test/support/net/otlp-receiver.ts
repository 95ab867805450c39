// A trace collector on a real socket: accepts OTLP over HTTP as JSON and rejects violations of the protocol
// (opentelemetry.io/docs/specs/otlp, opentelemetry.proto/collector/trace/v1).

export type ReceivedSpan = {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_id: string | undefined;
  readonly name: string;
  readonly kind: "internal" | "server" | "client";
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly failed: boolean;
  readonly links: readonly string[];
  readonly began: bigint;
  readonly ended: bigint;
};

type AnyValue = {
  stringValue?: string;
  boolValue?: boolean;
  intValue?: string | number;
  doubleValue?: number;
  arrayValue?: { values: AnyValue[] };
};
type KeyValue = { key: string; value: AnyValue };
type WireSpan = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: KeyValue[];
  links?: { traceId: string; spanId: string }[];
  status?: { code?: number };
};
type Export = { resourceSpans: { resource: { attributes: KeyValue[] }; scopeSpans: { spans: WireSpan[] }[] }[] };

export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  readonly resources: Readonly<Record<string, unknown>>[] = [];
  readonly headers: Headers[] = [];
  /** Raw request bodies. */
  readonly texts: string[] = [];
  /** If set, answers all requests, and no spans are stored. */
  answer: (() => Response | Promise<Response>) | undefined;
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: (request) => this.#receive(request),
  });

  get url(): string {
    return this.#server.url.href.replace(/\/$/, "");
  }

  find(name: string | RegExp): ReceivedSpan | undefined {
    return this.spans.find((span) => (typeof name === "string" ? span.name === name : name.test(span.name)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  async #receive(request: Request): Promise<Response> {
    const text = await request.text();
    if (this.answer) return this.answer();
    if (request.method !== "POST" || new URL(request.url).pathname !== "/v1/traces")
      return new Response(null, { status: 404 });
    if (request.headers.get("content-type") !== "application/json") return new Response(null, { status: 415 });
    this.headers.push(request.headers);
    this.texts.push(text);
    try {
      const { resourceSpans } = JSON.parse(text) as Export;
      for (const { resource, scopeSpans } of resourceSpans) {
        this.resources.push(toRecord(resource.attributes));
        for (const { spans } of scopeSpans) this.spans.push(...spans.map(toSpan));
      }
    } catch (error) {
      return new Response(String(error), { status: 400 });
    }
    return Response.json({ partialSuccess: {} });
  }
}

const toSpan = (span: WireSpan): ReceivedSpan => {
  const parent_id = span.parentSpanId || undefined;
  const times = [span.startTimeUnixNano, span.endTimeUnixNano];
  if (times.some((time) => !/^\d{19}$/.test(time))) throw new Error(`times must be nanoseconds as text: ${times}`);
  if (!/^[\da-f]{32}$/.test(span.traceId)) throw new Error(`invalid trace ID: ${span.traceId}`);
  for (const id of [span.spanId, parent_id ?? span.spanId])
    if (!/^[\da-f]{16}$/.test(id)) throw new Error(`invalid span ID: ${id}`);
  const kind = ([undefined, "internal", "server", "client"] as const)[span.kind];
  if (!kind || span.name === "") throw new Error(`span without a name or kind: ${span.name} ${span.kind}`);
  return {
    trace_id: span.traceId,
    span_id: span.spanId,
    parent_id,
    name: span.name,
    kind,
    attributes: toRecord(span.attributes ?? []),
    failed: span.status?.code === 2,
    links: (span.links ?? []).map(({ traceId }) => traceId),
    began: BigInt(span.startTimeUnixNano),
    ended: BigInt(span.endTimeUnixNano),
  };
};

const toRecord = (pairs: readonly KeyValue[]): Record<string, unknown> =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, toValue(value)]));

const toValue = (value: AnyValue): unknown => {
  const [[kind = "", content] = []] = Object.entries(value);
  if (kind === "arrayValue") return value.arrayValue?.values.map(toValue);
  if (kind === "intValue") return Number(content);
  if (["stringValue", "boolValue", "doubleValue"].includes(kind)) return content;
  throw new Error(`unknown OTLP value: ${JSON.stringify(value)}`);
};
