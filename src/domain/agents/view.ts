// What agents are shown with, taken from the server's context: the present time, latencies as measured, the key of sealed texts.
import { hasAppHosts } from "../applications/names.ts";
import type { DomainContext } from "../context.ts";
import { latencyOf } from "./latency.ts";
import type { AgentView } from "./present.ts";

/** `store` reads the rows, as they stand in one moment where a snapshot is given. */
export const agentView = (
  ctx: DomainContext,
  { compat }: { readonly compat: boolean },
  store: AgentView["store"] = ctx.store,
): AgentView => ({
  store,
  encryption: ctx.encryption,
  now: ctx.clock.now(),
  compat,
  hasAppHosts: hasAppHosts(ctx),
  latency: latencyOf(ctx),
});
