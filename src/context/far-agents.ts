// Agents whose tunnels end at another node: that node dials, and the bytes go through it. Chats need them: a claimed prebuild and someone else's
// workspace are of another part than the chat that works in them.
import { NotBegun } from "#base/errors.ts";
import type { Parts } from "#base/parts.ts";
import type { PartIndex } from "#db/part-index.ts";
import type { NodeLinks } from "#src/cluster/node-link.ts";
import { type AgentDialer, pipe, WireError } from "#src/wire/index.ts";

const SERVICE = "agent";

type Target = { readonly agent_id: string; readonly port: number; readonly tls: boolean };

export type FarAgents = {
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "open" | "serveStreams">;
};

/** Dials agents of other nodes there, and those of this one here. */
export const farDialer = ({ parts, index, links }: FarAgents, here: AgentDialer): AgentDialer => ({
  isDaemon: (agent_id) => here.isDaemon(agent_id),
  async dial(agent_id, port, signal, options) {
    const part = await index.of("agent", agent_id);
    if (part === undefined || parts.has(part)) return here.dial(agent_id, port, signal, options);
    const node = parts.nodeOf(part);
    if (!node) throw new WireError("refused", "No node has this workspace now.");
    const target: Target = { agent_id, port, tls: options?.tls ?? false };
    const opened = links.open(node, SERVICE, target);
    const gone = Promise.withResolvers<never>();
    const leave = (): void => gone.reject(new WireError("closed", "The caller has gone."));
    signal?.addEventListener("abort", leave, { once: true });
    if (signal?.aborted) leave();
    try {
      return await Promise.race([opened, gone.promise]);
    } catch (error) {
      opened.then(
        (late) => late.reset("The caller has gone."),
        () => undefined,
      );
      throw error;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  },
});

/** Dials for other nodes. */
export const answerFarDials = ({ parts, index, links }: FarAgents, here: AgentDialer): void =>
  links.serveStreams(SERVICE, async (args, stream) => {
    const { agent_id, port, tls } = args as Target;
    const part = await index.of("agent", agent_id);
    if (part === undefined || !parts.has(part)) throw new NotBegun("The node does not have this workspace.");
    void pipe(stream, await here.dial(agent_id, port, undefined, { tls }));
  });
