// Wire shape of WebSocket messages that correspond to server-sent events: each event with its name.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { Generic } from "./generic.ts";
import { named, namedObject } from "./shape-names.ts";

const ErrorFrame = namedObject("ErrorFrame", { type: t.Literal("error"), data: Generic });
const PingFrame = namedObject("PingFrame", { type: t.Literal("ping"), data: t.Null() });

/** Returns the messages of a WebSocket that sends `data`: data, errors, and periodic heartbeats. */
export const eventFrames = <T extends TSchema>(name: string, data: T) =>
  named(
    `${name}Frame`,
    t.Union([named(`${name}DataFrame`, t.Object({ type: t.Literal("data"), data })), ErrorFrame, PingFrame]),
  );

/** Like `eventFrames` without heartbeats, for streams whose clients do not accept them. */
export const eventFramesWithoutPing = <T extends TSchema>(name: string, data: T) =>
  named(`${name}Frame`, t.Union([named(`${name}DataFrame`, t.Object({ type: t.Literal("data"), data })), ErrorFrame]));
