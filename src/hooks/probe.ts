// Tests a consumer without a chat: sends one signed event and ignores the decision. Used by `slipway doctor`.
import type { Clock } from "#base/clock.ts";
import { NIL_UUID, uuid } from "#base/ids.ts";
import { type Consumer, ExchangeError, encodeBody, sendHookRequest } from "./exchange.ts";
import type { HookRequest } from "./protocol.ts";

const STOP: HookRequest = { event: "stop", meta: { chat_id: NIL_UUID, owner_id: NIL_UUID }, data: {} };

/** Returns undefined if the response is valid, otherwise the problem. */
export const probeConsumer = async (clock: Clock, consumer: Consumer): Promise<string | undefined> => {
  const dispatch_id = uuid();
  const sent = { request: STOP, dispatch_id, body: encodeBody(STOP, dispatch_id) };
  try {
    await sendHookRequest({ clock, consumer, issuer: NIL_UUID }, sent);
    return undefined;
  } catch (error) {
    if (error instanceof ExchangeError) return `${error.failure}: ${error.message}`;
    throw error;
  }
};
