// The private network of this server: its coordinator, its relay, and who hears of workspaces. Built once in src/context.ts.
import { Coordinator } from "#src/tailnet/coordinator.ts";
import { Relay } from "#src/tailnet/relay.ts";
import type { DomainContext } from "../context.ts";
import { WorkspaceChanges } from "./workspace-changes.ts";

export class Network {
  readonly coordinator = new Coordinator();
  readonly relay: Relay;
  readonly changes: WorkspaceChanges;

  constructor(parts: Pick<DomainContext, "clock" | "store" | "topics">) {
    this.relay = new Relay(parts.clock);
    this.changes = new WorkspaceChanges(parts);
  }
}
