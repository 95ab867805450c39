// TLS inside a stream, for programs of a workspace that speak it behind an agent that does not: the server is then the TLS client. Whatever
// certificate is shown is taken, since the way there is the workspace's own.
import { connect } from "node:tls";
import type { Duplex } from "./duplex.ts";
import { duplexOfNode, nodeStream } from "./node-stream.ts";
import { WireError } from "./wire-error.ts";

/** What is inside, once TLS stands. Throws WireError `refused` when the other side does not speak it; the stream is broken then. */
export const tlsOver = async (stream: Duplex, signal?: AbortSignal): Promise<Duplex> => {
  const socket = connect({ socket: nodeStream(stream), rejectUnauthorized: false });
  const giveUp = (): void => void socket.destroy(new Error("It was given up."));
  signal?.addEventListener("abort", giveUp, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("closed")));
      if (signal?.aborted) giveUp();
    });
    return duplexOfNode(socket);
  } catch (error) {
    stream.reset("It does not speak TLS.");
    throw new WireError("refused", "It does not speak TLS.", error);
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
};
