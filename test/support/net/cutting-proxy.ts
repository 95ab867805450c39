// A proxy in front of a server that fails as the test says: it loses responses, answers with error statuses, and cuts streams.
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";

/**
 * What happens to a request. `passes`: the response arrives. `lost`: the server handles the request, but its response is lost. `hangs`: no
 * response. A status: the proxy answers with it and `Retry-After: 0`, or 3600 for `429 for an hour`.
 */
export type ProxyOutcome = "passes" | "lost" | "hangs" | 429 | 502 | 503 | "429 for an hour";

export const startCuttingProxy = async (target: URL) => {
  const outcomes: ProxyOutcome[] = [];
  const open = new Set<ServerResponse>();
  const requests: string[] = [];
  const handleRequest = (incoming: IncomingMessage, response: ServerResponse): void => {
    const fate = outcomes.shift();
    requests.push(`${incoming.method} ${incoming.url}${fate === undefined || fate === "passes" ? "" : ` ${fate}`}`);
    if (typeof fate === "number" || fate === "429 for an hour") {
      incoming.resume();
      const [status, seconds] = typeof fate === "number" ? [fate, "0"] : [429, "3600"];
      response.writeHead(status, { "retry-after": seconds }).end("<html>busy</html>");
      return;
    }
    open.add(response);
    if (fate === "hangs") return;
    const { method, url, headers } = incoming;
    const options = { host: target.hostname, port: target.port, method, path: url, headers };
    const outgoing = request(Object.assign(options, { headers: Object.assign({}, headers, { host: target.host }) }));
    outgoing.on("response", (answer) => {
      if (fate === "lost") {
        answer.resume().on("end", () => response.socket?.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.on("error", () => response.socket?.destroy()).pipe(response);
    });
    outgoing.on("error", () => response.socket?.destroy());
    response.on("close", () => {
      open.delete(response);
      outgoing.destroy();
    });
    incoming.pipe(outgoing);
  };
  const server = createServer(handleRequest);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    /** The outcomes of the next requests, in order; later requests pass. */
    fates: outcomes,
    /** All requests with their outcomes. */
    seen: requests,
    /** Breaks all open connections. */
    cut(): void {
      for (const response of open) response.socket?.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const response of open) response.socket?.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
