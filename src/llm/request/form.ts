// What decides about the form of a request's messages, beyond the receiver's own rules.
import type { Receiver } from "./receivers.ts";

export type MessagesForm = {
  readonly receiver: Receiver;
  /** How the request calls a tool that the history knows under this name. */
  readonly nameOf: (name: string) => string;
  /** The arguments of a call with their members named as in the request. */
  readonly argsOf: (name: string, args: unknown) => unknown;
  /** Without tools, calls and results are sent as text: servers refuse or ignore them. */
  readonly hasTools: boolean;
  /** Without it, the system's words stand at the beginning of the first message. */
  readonly hasSystem: boolean;
};
