// Limits how many requests of an MCP server, such as pings, are answered at a time (rule MC-17). Each answer is a separate message, over
// HTTP a separate request. Without a limit, one response full of pings would use up the memory and delay all other requests.
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";

/** Maximum number of answers that the server has not received yet. */
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
  const dropAfterRefusal =
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
      Reflect.set(target, name, name === "onmessage" && value ? dropAfterRefusal(value) : value, target),
  });
};
