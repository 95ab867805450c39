// What the server does, as spans of traces: a request, a commit, a build, a turn and the calls in it. Without a collector (setting
// otlp_endpoint) no span is made, and callers pay one comparison. src/telemetry is the other side; nothing else knows OpenTelemetry.
//
// Attributes are words of the code, figures and ids of workspaces and chats: never names or ids of people, paths, queries, contents or keys.
import { AsyncLocalStorage } from "node:async_hooks";

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** The W3C headers by which one program continues the trace of another. */
export type TraceHeaders = { readonly traceparent: string; readonly tracestate?: string };

export type SpanOptions = {
  readonly name: string;
  readonly kind?: "server" | "client" | "internal";
  readonly attributes?: SpanAttributes;
  /** Default: the current span. */
  readonly parent?: Span | undefined;
  /** When it began, milliseconds since 1970; default: now. */
  readonly began?: number;
};

export interface Span {
  /** Whether a request caused it; false for the server's own work. */
  readonly isRequest: boolean;
  readonly isOver: boolean;
  /** What continues the trace elsewhere. */
  readonly headers: TraceHeaders;
  rename(name: string): void;
  /** Adds attributes; undefined ones are left out. */
  set(attributes: SpanAttributes): void;
  /** Marks it as failed. `type` is a word of the code or the name of an error, never its message. */
  fail(type: string): void;
  /** Ends it, once. */
  end(): void;
}

export interface Tracer {
  begin(options: SpanOptions, parent: Span | undefined, link?: Span): Span;
  /** What another program has begun; undefined for headers that are none of W3C's. */
  adopt(headers: TraceHeaders): Span | undefined;
}

/** What became of spans: spans that reached the collector, and dropped spans by reason. */
export type SpanCounts = { exported: number; buffer_full: number; export_failed: number };

/** Spans that go to a collector until it is disposed. */
export type Telemetry = AsyncDisposable & { readonly counts: Readonly<SpanCounts> };

let tracer: Tracer | undefined;
const current = new AsyncLocalStorage<Span | undefined>();

/** Spans go to this one from now on; undefined: nowhere. One for each process. */
export const setTracer = (next: Tracer | undefined): void => {
  tracer = next;
};

/** True when spans are wanted. */
export const isTraced = (): boolean => tracer !== undefined;

/** The span that this work is part of. */
export const currentSpan = (): Span | undefined => (tracer ? current.getStore() : undefined);

/** Begins a span, which its caller ends; undefined when none is wanted. */
export const beginSpan = (options: SpanOptions): Span | undefined =>
  tracer?.begin(options, options.parent ?? current.getStore());

/**
 * Runs work that outlasts its reason, such as a build, as a span that ends with it. It belongs to the trace of the request that
 * asked for it; another reason, such as the turn before, is linked, so that a trace does not grow without end.
 */
export const inOwnSpan = async <T>(
  options: () => SpanOptions,
  reason: Span | undefined,
  work: () => Promise<T>,
): Promise<T> => {
  if (!tracer) return await work();
  const span =
    reason?.isRequest === false ? tracer.begin(options(), undefined, reason) : tracer.begin(options(), reason);
  try {
    return await current.run(span, work);
  } finally {
    span.end();
  }
};

/** The span that another program has begun, by what it has sent. */
export const adoptSpan = (headers: TraceHeaders): Span | undefined => tracer?.adopt(headers);

/** Runs `work` as part of the span. */
export const withinSpan = <T>(span: Span | undefined, work: () => T): T => (span ? current.run(span, work) : work());

/** Runs `work` as part of a span of its own, which ends with it and has failed when it throws. */
export const inSpan = async <T>(
  options: () => SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> => {
  if (!tracer) return await work(undefined);
  const span = tracer.begin(options(), current.getStore());
  try {
    return await current.run(span, () => work(span));
  } catch (error) {
    span.fail(errorType(error));
    throw error;
  } finally {
    span.end();
  }
};

/** The same work, which belongs to the present span on every stack. */
export const carrySpan = <T>(work: () => T): (() => T) => {
  const span = currentSpan();
  return span ? () => current.run(span, work) : work;
};

/** What an error is called in a span: its kind where it has one. */
export const errorType = (error: unknown): string => {
  if (!(error instanceof Error)) return "unknown";
  const { kind } = error as { kind?: unknown };
  return typeof kind === "string" ? kind : error.name;
};
