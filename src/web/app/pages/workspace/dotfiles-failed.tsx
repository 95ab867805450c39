// A notice on a workspace's page that the owner's dotfiles could not be installed.
import type { WorkspaceAgent } from "#schema/agents/agent.ts";
import { Icon } from "../../parts/icon.tsx";

type Script = WorkspaceAgent["scripts"][number];

const MINUTE_NS = 60e9;

export const DotfilesFailed = ({ agents, logs }: { agents: readonly WorkspaceAgent[]; logs: string }) => (
  <>
    {agents.flatMap(({ id, scripts }) =>
      scripts
        .filter(({ is_dotfiles, status }) => is_dotfiles && (status === "exit_failure" || status === "timed_out"))
        .map((script) => (
          <div key={id} class="banner" role="status">
            <span class="t-attn">
              <Icon name="warn" />
            </span>
            <span>
              The owner's dotfiles were not installed: {describe(script)}. The workspace started without them.
            </span>
            <a class="btn sm ghost push" href={logs}>
              Show log
            </a>
          </div>
        )),
    )}
  </>
);

const describe = ({ status, exit_code, timeout }: Script): string =>
  status === "timed_out"
    ? `they took longer than ${timeout / MINUTE_NS} minutes`
    : `the script failed with exit code ${exit_code}`;
