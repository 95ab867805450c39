// The machine that a template represents, which runs the template's start script. Only the template `minimal` starts its own machine.
import { mkdirSync } from "node:fs";
import { findProcesses } from "#test/support/terraform.ts";
import { until } from "#test/support/until.ts";

type Agent = { readonly token: string; readonly init_script: string };

/** Returns the only agent in a state. */
export const parseAgent = (state: string): Agent => {
  const { resources = [] } = JSON.parse(state) as {
    resources?: { type: string; instances: { attributes: Agent }[] }[];
  };
  const found = resources.find(({ type }) => type === "coder_agent")?.instances[0]?.attributes;
  if (!found) throw new Error("the state has no agent");
  return found;
};

export class Machine implements AsyncDisposable {
  readonly #home: string;

  constructor(home: string) {
    this.#home = home;
    mkdirSync(home, { recursive: true });
  }

  /** Boots the machine. Earlier processes no longer exist, as on a new machine. */
  async boot({ token, init_script }: Agent): Promise<void> {
    await this.off();
    Bun.spawn(["setsid", "sh", "-c", init_script], {
      cwd: this.#home,
      env: { PATH: process.env.PATH ?? "", HOME: this.#home, SHELL: "/bin/bash", CODER_AGENT_TOKEN: token },
      stdio: ["ignore", "ignore", "ignore"],
    });
  }

  async off(): Promise<void> {
    await until(() => {
      const remaining = findProcesses(`HOME=${this.#home}`);
      for (const pid of remaining) {
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // The process has just ended.
        }
      }
      return remaining.length === 0;
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.off();
  }
}
