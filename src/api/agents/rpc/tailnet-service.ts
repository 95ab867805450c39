// The Tailnet service on an agent's connection, as far as it exists: the relay map. Everything else is answered "unimplemented".
import type { TailnetHandlers } from "#src/wire/agent-api.ts";
import type { ApiContext } from "../../context.ts";
import { derpMap } from "./derp-map.ts";

export const tailnetService = (ctx: ApiContext): Partial<TailnetHandlers> => ({
  async *streamDERPMaps(_request, { signal }) {
    yield derpMap(ctx.accessUrl);
    // The map never changes while the server runs; the stream stays open as agents expect.
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
  },
});
