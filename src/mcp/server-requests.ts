// Limits how many requests of an MCP server, such as pings, are answered at a time (rule MC-17). Each answer is a message of its own, over HTTP
// even a request of its own: one response full of pings would otherwise take the memory of the process and delay all other requests.
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";

/** Answers that the server has not taken yet. */
const MAX_ANSWERS = 64;
const TOO_MANY = `it sent more than ${MAX_ANSWERS} requests at a time`;

/** Returns a transport that closes itself, with the reason, when the server sends too many requests at a time. Later messages are ignored. */
export const limitServerRequests = (transport: Transport): Transport => {
  let answers = 0;
  let isRefused = false;
  const send: Transport["send"] = async (message, options) => {
    if ("method" in message) return transport.send(message, options);
    if (isRefused) return;
    if (answers >= MAX_ANSWERS) return refuse();
    answers += 1;
    try {
      await transport.send(message, options);
    } finally {
      answers -= 1;
    }
  };
  const refuse = async (): Promise<void> => {
    isRefused = true;
    Object.assign(transport, { reason: async () => TOO_MANY });
    await transport.close();
  };
  const dropLater =
    (receive: Transport["onmessage"]): Transport["onmessage"] =>
    (message: JSONRPCMessage, extra) =>
      isRefused ? undefined : receive?.(message, extra);
  return new Proxy(transport, {
    get: (target, name) => {
      if (name === "send") return send;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
    set: (target, name, value) =>
      Reflect.set(target, name, name === "onmessage" && value ? dropLater(value) : value, target),
  });
};
