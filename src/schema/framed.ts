// What a WebSocket sends that stands for a stream of server-sent events: each event with its name.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { Generic } from "./generic.ts";
import { named, namedObject } from "./named.ts";

const ErrorFrame = namedObject("ErrorFrame", { type: t.Literal("error"), data: Generic });
const PingFrame = namedObject("PingFrame", { type: t.Literal("ping"), data: t.Null() });

/** The messages of a WebSocket that sends `data`: those, what went wrong, and a sign of life from time to time. */
export const framed = <T extends TSchema>(name: string, data: T) =>
  named(
    `${name}Frame`,
    t.Union([named(`${name}DataFrame`, t.Object({ type: t.Literal("data"), data })), ErrorFrame, PingFrame]),
  );

/** The same without a sign of life, for streams whose clients take none. */
export const framedWithoutPing = <T extends TSchema>(name: string, data: T) =>
  named(`${name}Frame`, t.Union([named(`${name}DataFrame`, t.Object({ type: t.Literal("data"), data })), ErrorFrame]));
