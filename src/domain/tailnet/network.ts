// The private network of this server: its coordinator, its relay, and who hears of workspaces. Built once in src/context/context.ts.
import type { Clock } from "#base/clock.ts";
import { Coordinator } from "#src/tailnet/coordinator.ts";
import { Relay } from "#src/tailnet/relay.ts";
import { type ChangesDeps, WorkspaceChanges } from "./workspace-changes.ts";

export class Network {
  readonly coordinator = new Coordinator();
  readonly relay: Relay;
  readonly changes: WorkspaceChanges;

  constructor(parts: ChangesDeps & { readonly clock: Clock }) {
    this.relay = new Relay(parts.clock);
    this.changes = new WorkspaceChanges(parts);
  }
}
