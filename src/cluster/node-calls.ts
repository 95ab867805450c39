// The wire format of a call: the service and its arguments, with the origin, request IDs and span of the caller, which the other node
// adopts.
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
  /** The span that the call belongs to. */
  readonly trace?: TraceHeaders;
};

/** Encodes a new call. Throws AppError `too_large`. */
export const formatCall = (service: string, args: unknown): string => {
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

/** Runs a received call as if it were made on this node. */
export const runCall = <T>(text: string, run: (service: string, args: unknown) => Promise<T>): Promise<T> => {
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
