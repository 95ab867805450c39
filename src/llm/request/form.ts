// Determines the form of a request's messages, in addition to the receiver's rules.
import type { Receiver } from "./receivers.ts";

export type MessagesForm = {
  readonly receiver: Receiver;
  /** Returns the request's name for a tool in the history. */
  readonly getOfferedName: (name: string) => string;
  /** Returns the arguments of a call with the request's member names. */
  readonly toOfferedArgs: (name: string, args: unknown) => unknown;
  /** Without tools, calls and results are sent as text, because servers refuse or ignore them. */
  readonly hasTools: boolean;
  /** If false, the system prompt is put at the start of the first message. */
  readonly hasSystem: boolean;
};
