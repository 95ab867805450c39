// Implements the spans of src/base/spans.ts with OpenTelemetry's tracer.
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import type { Span, SpanAttributes, SpanOptions, TraceHeaders, Tracer } from "#base/spans.ts";

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };
const w3c = new W3CTraceContextPropagator();

export class OtlpTracer implements Tracer {
  readonly #tracer: OtelTracer;

  constructor(tracer: OtelTracer) {
    this.#tracer = tracer;
  }

  begin({ name, kind = "internal", attributes = {}, began }: SpanOptions, parent: Span | undefined, link?: Span): Span {
    const linkedContext = link instanceof OtlpSpan ? trace.getSpanContext(link.context) : undefined;
    const options = {
      kind: KINDS[kind],
      attributes,
      links: linkedContext ? [{ context: linkedContext }] : [],
      root: parent === undefined,
    };
    const start = began === undefined ? {} : { startTime: began };
    const parentContext = parent instanceof OtlpSpan ? parent.context : ROOT_CONTEXT;
    const span = this.#tracer.startSpan(name, { ...options, ...start }, parentContext);
    return new OtlpSpan(trace.setSpan(parentContext, span), kind === "server");
  }

  adopt(headers: TraceHeaders): Span | undefined {
    const context = w3c.extract(ROOT_CONTEXT, headers, defaultTextMapGetter);
    return context === ROOT_CONTEXT ? undefined : new OtlpSpan(context, true);
  }
}

class OtlpSpan implements Span {
  /** OpenTelemetry's context: the span, and the trace state of its caller. */
  readonly context: Context;
  readonly isRequest: boolean;
  isOver = false;

  constructor(context: Context, isRequest: boolean) {
    this.context = context;
    this.isRequest = isRequest;
  }

  get headers(): TraceHeaders {
    const headers = { traceparent: "" };
    w3c.inject(this.context, headers, defaultTextMapSetter);
    return headers;
  }

  rename(name: string): void {
    trace.getSpan(this.context)?.updateName(name);
  }

  set(attributes: SpanAttributes): void {
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== undefined) trace.getSpan(this.context)?.setAttribute(key, value as string);
    }
  }

  fail(type: string): void {
    trace.getSpan(this.context)?.setAttribute("error.type", type).setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    trace.getSpan(this.context)?.end();
  }
}
