// Trace spans of the server's work: requests, commits, builds, turns and the calls in them. Without a collector (setting otlp_endpoint) no
// spans are created, and callers pay one comparison. src/telemetry implements the tracer; nothing else depends on OpenTelemetry. Attributes
// are constants of the code, numbers, and IDs of workspaces and chats: never names or IDs of people, paths, queries, contents or keys.
import { AsyncLocalStorage } from "node:async_hooks";

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** The W3C headers with which one program continues another's trace. */
export type TraceHeaders = { readonly traceparent: string; readonly tracestate?: string };

export type SpanOptions = {
  readonly name: string;
  readonly kind?: "server" | "client" | "internal";
  readonly attributes?: SpanAttributes;
  /** Default: the current span. */
  readonly parent?: Span | undefined;
  /** Start time in milliseconds since 1970; default: now. */
  readonly began?: number;
};

export interface Span {
  /** Whether a request caused the span; false for the server's own work. */
  readonly isRequest: boolean;
  readonly isOver: boolean;
  /** Headers that continue the trace in another program. */
  readonly headers: TraceHeaders;
  rename(name: string): void;
  /** Adds attributes; undefined ones are left out. */
  set(attributes: SpanAttributes): void;
  /** Marks the span as failed. `type` is a constant of the code or the name of an error, never its message. */
  fail(type: string): void;
  /** Ends the span. Later calls have no effect. */
  end(): void;
}

export interface Tracer {
  begin(options: SpanOptions, parent: Span | undefined, link?: Span): Span;
  /** Returns a span started by another program; undefined if the headers are not valid W3C headers. */
  adopt(headers: TraceHeaders): Span | undefined;
}

/** Number of exported spans, and of dropped spans by reason. */
export type SpanCounts = { exported: number; buffer_full: number; export_failed: number };

/** Exports spans to a collector until disposed. */
export type Telemetry = AsyncDisposable & { readonly counts: Readonly<SpanCounts> };

let tracer: Tracer | undefined;
const current = new AsyncLocalStorage<Span | undefined>();

/** Sets the process-wide tracer; undefined disables tracing. */
export const setTracer = (next: Tracer | undefined): void => {
  tracer = next;
};

/** Returns whether tracing is enabled. */
export const isTraced = (): boolean => tracer !== undefined;

/** Returns the span of the current work. */
export const getCurrentSpan = (): Span | undefined => (tracer ? current.getStore() : undefined);

/** Starts a span, which its caller must end; undefined when tracing is disabled. */
export const beginSpan = (options: SpanOptions): Span | undefined =>
  tracer?.begin(options, options.parent ?? current.getStore());

/**
 * Runs work that outlasts its cause, such as a build, in a span that ends with it. The span belongs to the trace of the request that caused
 * it; any other cause, such as the previous turn, is only linked, so that traces do not grow without limit.
 */
export const runInDetachedSpan = async <T>(
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

/** Returns the span that another program started, from its headers. */
export const adoptSpan = (headers: TraceHeaders): Span | undefined => tracer?.adopt(headers);

/** Runs `work` as part of the span. */
export const runInSpan = <T>(span: Span | undefined, work: () => T): T => (span ? current.run(span, work) : work());

/** Runs `work` in a new span that ends with it and is marked as failed when it throws. */
export const runInNewSpan = async <T>(
  options: () => SpanOptions,
  work: (span: Span | undefined) => Promise<T>,
): Promise<T> => {
  if (!tracer) return await work(undefined);
  const span = tracer.begin(options(), current.getStore());
  try {
    return await current.run(span, () => work(span));
  } catch (error) {
    span.fail(getErrorType(error));
    throw error;
  } finally {
    span.end();
  }
};

/** Returns a function that runs the work in the span that is current now. */
export const bindToSpan = <T>(work: () => T): (() => T) => {
  const span = getCurrentSpan();
  return span ? () => current.run(span, work) : work;
};

/** Returns the name of an error for spans: the error's kind if it has one. */
export const getErrorType = (error: unknown): string => {
  if (!(error instanceof Error)) return "unknown";
  const { kind } = error as { kind?: unknown };
  return typeof kind === "string" ? kind : error.name;
};
