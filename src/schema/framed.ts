// What a WebSocket sends that stands for a stream of server-sent events: each event with its name.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { Generic } from "./generic.ts";
import { named } from "./named.ts";

const ErrorFrame = named("ErrorFrame", t.Object({ type: t.Literal("error"), data: Generic }));
const PingFrame = named("PingFrame", t.Object({ type: t.Literal("ping"), data: t.Null() }));

/** The messages of a WebSocket that sends `data`: those, what went wrong, and a sign of life from time to time. */
export const framed = <T extends TSchema>(name: string, data: T) =>
  named(
    `${name}Frame`,
    t.Union([named(`${name}DataFrame`, t.Object({ type: t.Literal("data"), data })), ErrorFrame, PingFrame]),
  );
