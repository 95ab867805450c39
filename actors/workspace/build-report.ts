// The report of a build: the job's output, and the build's cost.
import type { Clock } from "#base/clock.ts";
import type { BuildReport } from "#src/provisioners/provisioner.ts";
import { askWithRetries } from "../job/patience.ts";
import { JobReport } from "../job/report.ts";
import type { RunOf } from "../job/state.ts";
import type { Directory } from "../runtime/directory.ts";
import type { WorkspaceActor } from "./actor.ts";

export class WorkspaceBuildReport extends JobReport implements BuildReport {
  readonly #charge: (daily_cost: number) => Promise<unknown>;

  constructor(
    clock: Clock,
    workspaces: Directory<WorkspaceActor>,
    workspace_id: string,
    run: RunOf,
    signal: AbortSignal,
  ) {
    super(clock, (said) => workspaces.ask(workspace_id, "say", { ...run, ...said }));
    const ask = (daily_cost: number) => workspaces.ask(workspace_id, "chargeJob", { ...run, daily_cost });
    this.#charge = (daily_cost) => askWithRetries(clock, signal, () => ask(daily_cost));
  }

  async charge(daily_cost: number): Promise<void> {
    await this.#charge(daily_cost);
  }
}
