// What every part of the server is built on.

import type { Events } from "#actors/runtime/events.ts";
import type { Elsewhere } from "#actors/runtime/far-asks.ts";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import type { Encryption } from "#base/encryption.ts";
import type { Parts } from "#base/parts.ts";
import type { Topics } from "#base/topics.ts";
import type { Store } from "#db/engine/store.ts";
import type { ActorKind, Far } from "./far-actors.ts";
import type { FarAgents } from "./far-agents.ts";

export type Base = {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: Store;
  readonly topics: Topics<Events>;
  readonly encryption: Encryption;
  /** What of the deployment is this node's: all, where there is one. */
  readonly parts: Parts;
  /** The other nodes; undefined where none exist. */
  readonly far: (Far & FarAgents) | undefined;
  /** The actors of this kind that other nodes have; undefined where none exist. */
  readonly elsewhere: (kind: ActorKind) => Elsewhere | undefined;
  /** Where people and workspaces reach the server; known once it listens. */
  readonly accessUrl: () => URL;
  /** Copies messages to actors, in tests. */
  readonly copy: (<T>(args: T) => T) | undefined;
};
