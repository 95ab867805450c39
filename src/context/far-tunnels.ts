// The coordinators of nodes, joined over the links between them (src/domain/tailnet/far-tunnels.ts).
import type { Clock } from "#base/clock.ts";
import { type FarClient, FarTunnels } from "#domain/tailnet/far-tunnels.ts";
import { type Coordinator, clientRules, LOST_MS } from "#src/tailnet/index.ts";
import { routerFor, serve, Tailnet, tailnetClient } from "#src/wire/index.ts";
import type { Far } from "./far-actors.ts";
import type { FarAgents } from "./far-agents.ts";

const SERVICE = "coordinator";

type Revoked = { readonly client_id: string; readonly agent_id?: string };

export const joinCoordinators = (
  { parts, index, links }: Far & FarAgents,
  clock: Clock,
  coordinator: Coordinator,
): void => {
  coordinator.others = new FarTunnels({
    clock,
    parts,
    partOf: (agent_id) => index.of("agent", agent_id),
    join: (node, client) => tailnetClient({ open: () => links.open(node, SERVICE, client) }).coordinate(),
    revoke: (node, client_id, agent_id) => links.call(node, SERVICE, { client_id, agent_id }),
  });
  links.serve(SERVICE, async (args) => {
    const { client_id, agent_id } = args as Revoked;
    coordinator.revoke(client_id, agent_id);
  });
  /** Whether the client may was judged where it is. */
  const refuse = async (agent_id: string): Promise<string | undefined> => {
    const part = await index.of("agent", agent_id);
    return part !== undefined && parts.has(part) ? undefined : "the agent is not at this node";
  };
  links.serveStreams(SERVICE, async (args, stream) => {
    const { id, holder } = args as FarClient;
    const peer = { id, ...(holder && { holder }), isWatched: true, isGuest: true, rules: clientRules(refuse) };
    const router = routerFor(Tailnet, {
      coordinate: (requests, { signal }) => coordinator.serve(peer, requests, signal),
    });
    void serve(stream, router, { clock }).finally(() => {
      if (coordinator.isLost(id)) clock.after(LOST_MS, () => coordinator.forgetLost(id));
    });
  });
};
