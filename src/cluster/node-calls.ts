// The wire format of a call: what is asked for and on whose behalf, so that the other node uses the same origin.
import { AppError } from "#base/errors.ts";
import { getCurrentOrigin, type Origin, withOrigin } from "#base/origin.ts";
import { adoptSpan, getCurrentSpan, runInSpan, type TraceHeaders } from "#base/spans.ts";
import { getCurrentRequests, runForRequests } from "#base/trace.ts";
import { MAX_FRAME_BYTES } from "./node-frames.ts";

type Call = {
  readonly service: string;
  readonly args?: unknown;
  readonly origin?: Origin;
  readonly requests?: readonly string[];
  /** The span the call belongs to. */
  readonly trace?: TraceHeaders;
};

/** Returns the text of a new call. Throws AppError `too_large`. */
export const callText = (service: string, args: unknown): string => {
  const origin = getCurrentOrigin()?.();
  const requests = [...getCurrentRequests()];
  const trace = getCurrentSpan()?.headers;
  const call: Call = {
    service,
    args,
    ...(origin && { origin }),
    ...(requests.length > 0 && { requests }),
    ...(trace && { trace }),
  };
  return requireFrameSize(JSON.stringify(call));
};

/** Runs a received call as if it was made here. */
export const doCall = <T>(text: string, run: (service: string, args: unknown) => Promise<T>): Promise<T> => {
  const { service, args, origin, requests, trace } = JSON.parse(text) as Call;
  const runWithOrigin = () => withOrigin(origin && (() => origin), () => run(service, args));
  const work = () => runInSpan(trace && adoptSpan(trace), runWithOrigin);
  return requests ? runForRequests(requests, work) : work();
};

/** Throws AppError `too_large` for text that does not fit into one frame. */
export const requireFrameSize = (text: string): string => {
  // A character takes at most three bytes.
  if (text.length > MAX_FRAME_BYTES / 3 && Buffer.byteLength(text) > MAX_FRAME_BYTES)
    throw new AppError("too_large", "This is too much for one message between nodes.");
  return text;
};
