// Tries a consumer without any chat: one signed event whose answer counts for nothing. Used by `slipway doctor`.
import type { Clock } from "#base/clock.ts";
import { NIL_UUID, uuid } from "#base/ids.ts";
import { type Consumer, ExchangeError, encodeBody, exchange } from "./exchange.ts";
import type { HookRequest } from "./protocol.ts";

const STOP: HookRequest = { event: "stop", meta: { chat_id: NIL_UUID, owner_id: NIL_UUID }, data: {} };

/** Undefined when it answers as it must, else why not, in words. */
export const probeConsumer = async (clock: Clock, consumer: Consumer): Promise<string | undefined> => {
  const dispatch_id = uuid();
  const sent = { request: STOP, dispatch_id, body: encodeBody(STOP, dispatch_id) };
  try {
    await exchange({ clock, consumer, issuer: NIL_UUID }, sent);
    return undefined;
  } catch (error) {
    if (error instanceof ExchangeError) return `${error.failure}: ${error.message}`;
    throw error;
  }
};
