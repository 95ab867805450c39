// Streams a provider's response to the caller of the gateway, and counts what it used.
import type { OpenAnswer } from "#actors/chat/spending/open-answers.ts";
import type { Clock } from "#base/clock.ts";
import { log } from "#base/log.ts";
import type { CallResult } from "#domain/ai/ledger.ts";
import type { Target } from "#domain/ai/names.ts";
import type { Endpoint } from "#src/llm/gateway/endpoint.ts";
import { KeyMask } from "#src/llm/gateway/key-mask.ts";
import type { Recording } from "#src/llm/gateway/recording.ts";
import type { Refusal } from "#src/llm/gateway/refusal.ts";
import { UsageTap } from "#src/llm/gateway/usage-tap.ts";
import { maskSecrets } from "#src/llm/secrets.ts";
import { findProviderRequestId, toCallerHeaders } from "./headers.ts";
import { CALLER_LEFT, toUnreadable } from "./refusals.ts";

/** A provider's response, with what is needed to record the call. */
export type ProviderResponse = {
  readonly target: Target;
  readonly response: Response;
  readonly key: string;
  readonly hidesUsage: boolean;
};

/** Settles the call, once. */
export type Recorder = (target: Target, result: Partial<CallResult> & Pick<CallResult, "outcome">) => Promise<void>;
export type StreamOptions = {
  readonly clock: Clock;
  readonly record: Recorder;
  readonly answer: OpenAnswer;
  /** When the call was sent to the provider, by the monotonic clock. */
  readonly sentAt: number;
};
type PassedCall = {
  readonly endpoint: Endpoint;
  /** Undefined when administrators have not enabled recording. */
  readonly recording: Recording | undefined;
};

/** Returns the provider's display name, or its type. */
export const getProviderName = ({ provider }: Target): string => provider.display_name || provider.provider;

/** Streams a provider's response to the caller with backpressure. When the caller leaves, reads the rest for its usage. */
export const passResponse = async (
  { endpoint, recording }: PassedCall,
  { target, response, key, hidesUsage }: ProviderResponse,
  { clock, record, answer, sentAt }: StreamOptions,
): Promise<Response | Refusal> => {
  const { callerLeft, hungUp } = answer;
  const headers = toCallerHeaders(response.headers, key);
  const usageTap = new UsageTap({
    format: endpoint.usage,
    type: response.headers.get("content-type") ?? "",
    hidesUsage,
  });
  const keyMask = new KeyMask(key);
  const provider_request_id = findProviderRequestId(response.headers, key);
  let first_byte_ms: number | null = null;
  const reader = response.body?.getReader();
  // The cancellation makes pending and later reads return `done`.
  hungUp.addEventListener("abort", () => void reader?.cancel().catch(() => {}));
  const read = async () => (await reader?.read()) ?? { done: true as const, value: undefined };
  /** The first chunk, until it is passed on or counted. */
  let next: Awaited<ReturnType<typeof read>> | undefined;
  const end = (outcome: CallResult["outcome"], isWhole: boolean): Promise<void> => {
    if (!isWhole) {
      // The provider charges for everything it has sent, including bytes held back from an interrupted response.
      if (next?.value) usageTap.read(next.value);
      usageTap.end();
    }
    const { usage, failed, text_bytes } = usageTap.tapped;
    // A response that consists only of an error used nothing.
    const was_begun = !(failed && text_bytes === 0);
    const textBytes = endpoint.kind === "embed" ? 0 : text_bytes;
    return record(target, {
      outcome: outcome === "ok" && failed ? "failed" : outcome,
      usage,
      text_bytes: textBytes,
      was_begun,
      first_byte_ms,
      provider_request_id,
      ...(isWhole && !failed && { read: "whole" as const }),
    });
  };
  const logInterruption = (error: unknown): void =>
    log("models").warn("the response from the provider {provider} was interrupted: {error}", {
      provider: getProviderName(target),
      error: maskSecrets(String(error), key),
    });
  /** Reads the rest of the answer without the caller, and settles the call. */
  const readRest = async (): Promise<void> => {
    let isWhole = false;
    try {
      for (;;) {
        const { done, value } = next ?? (await read());
        next = undefined;
        if (done) break;
        usageTap.read(value);
        answer.count(value.byteLength);
      }
      usageTap.end();
      isWhole = !hungUp.aborted;
    } catch (error) {
      if (!hungUp.aborted) logInterruption(error);
    }
    await end("aborted", isWhole);
  };
  // Until the first chunk has been sent, an unreadable response can still become a proper error.
  try {
    next = await read();
  } catch (error) {
    if (hungUp.aborted) throw error;
    logInterruption(error);
    await record(target, { outcome: "failed", was_begun: true, first_byte_ms, provider_request_id });
    return toUnreadable(getProviderName(target));
  }
  if (!next.done) first_byte_ms = Math.round(clock.monotonic() - sentAt);
  if (callerLeft.aborted) {
    await readRest();
    return callerLeft.reason as Refusal;
  }
  const stream = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // Needed even while the caller is not reading.
        callerLeft.addEventListener("abort", () => {
          // Cuts the connection, so that the caller does not mistake the response for a complete one. No reason is given: the runtime
          // would log it.
          controller.error(undefined);
          void readRest();
        });
      },
      async pull(controller) {
        try {
          for (;;) {
            const { done, value } = next ?? (await read());
            next = undefined;
            if (callerLeft.aborted) {
              // This read began before the caller left. `readRest` reads everything after it.
              if (value) usageTap.read(value);
              return;
            }
            if (done) {
              for (const lastBytes of [keyMask.read(usageTap.end()), keyMask.end()]) {
                recording?.read(lastBytes);
                if (lastBytes.length > 0) controller.enqueue(lastBytes);
              }
              // The ledger is written before the caller sees the end of the response.
              await end("ok", true);
              controller.close();
              return;
            }
            const masked = keyMask.read(usageTap.read(value));
            if (masked.length === 0) continue;
            recording?.read(masked);
            controller.enqueue(masked);
            return;
          }
        } catch (error) {
          if (callerLeft.aborted) return;
          logInterruption(error);
          await end("failed", false);
          controller.error(undefined);
        }
      },
      cancel() {
        answer.leave(CALLER_LEFT);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, { status: response.status, headers });
};
