// A call as it is on the wire: what is asked for, and for whom it is done, so that the other node does it for the same.
import { AppError } from "#base/errors.ts";
import { type Origin, originNow, withOrigin } from "#base/origin.ts";
import { adoptSpan, currentSpan, type TraceHeaders, withinSpan } from "#base/spans.ts";
import { currentRequests, runAsPartOf } from "#base/trace.ts";
import { MAX_FRAME_BYTES } from "./node-frames.ts";

type Call = {
  readonly service: string;
  readonly args?: unknown;
  readonly origin?: Origin;
  readonly requests?: readonly string[];
  /** The span that it is part of. */
  readonly trace?: TraceHeaders;
};

/** The text of a call that is made now. Throws AppError `too_large`. */
export const callText = (service: string, args: unknown): string => {
  const origin = originNow()?.();
  const requests = [...currentRequests()];
  const trace = currentSpan()?.headers;
  const call: Call = {
    service,
    args,
    ...(origin && { origin }),
    ...(requests.length > 0 && { requests }),
    ...(trace && { trace }),
  };
  return fitting(JSON.stringify(call));
};

/** Does what a call asks for, as if it had been asked for here. */
export const doCall = <T>(text: string, run: (service: string, args: unknown) => Promise<T>): Promise<T> => {
  const { service, args, origin, requests, trace } = JSON.parse(text) as Call;
  const asked = () => withOrigin(origin && (() => origin), () => run(service, args));
  const work = () => withinSpan(trace && adoptSpan(trace), asked);
  return requests ? runAsPartOf(requests, work) : work();
};

/** Throws AppError `too_large` for what is too long for one frame. */
export const fitting = (text: string): string => {
  // A character has three bytes at most.
  if (text.length > MAX_FRAME_BYTES / 3 && Buffer.byteLength(text) > MAX_FRAME_BYTES)
    throw new AppError("too_large", "This is too much for one message between nodes.");
  return text;
};
