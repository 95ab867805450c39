// A notice on a workspace's page about a shortage: a full home disk, or a process that the kernel killed for lack of memory.
import { formatSize } from "#base/format-size.ts";
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { Icon } from "../../parts/icon.tsx";
import { now, Time } from "../../parts/time.tsx";

/** How long the notice about a killed process is shown. */
const KILL_NOTICE_MS = 3_600_000;

export const OutOfSpace = ({ agents }: { agents: readonly WorkspaceAgent[] }) => (
  <>
    {agents.flatMap(({ id, status, resources }) => {
      if (status !== "connected" || !resources) return [];
      const { home, memory_kills } = resources;
      const [kill] = memory_kills.filter(({ killed_at }) => now.value - Date.parse(killed_at) < KILL_NOTICE_MS);
      return [
        home && home.level !== "ok" && (
          <div key={`disk ${id}`} class={home.level === "full" ? "banner bad" : "banner attn"} role="status">
            <span class={home.level === "full" ? "t-bad" : "t-attn"}>
              <Icon name="warn" />
            </span>
            <span>
              The disk is {home.level === "full" ? "full" : "almost full"}:{" "}
              {formatSize(home.total_bytes - home.used_bytes)} of {formatSize(home.total_bytes)} is free in{" "}
              <code>{home.path}</code>. Delete files that you no longer need.
            </span>
          </div>
        ),
        kill && (
          <div key={`memory ${id}`} class="banner attn" role="status">
            <span class="t-attn">
              <Icon name="warn" />
            </span>
            <span>
              Out of memory: the kernel killed {kill.process ? <code>{kill.process}</code> : "a process"}{" "}
              <Time at={kill.killed_at} />. Run fewer programs at a time, or give the workspace more memory.
            </span>
          </div>
        ),
      ];
    })}
  </>
);
