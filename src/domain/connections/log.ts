// Records connections of people to workspaces (rules CG-1 to CG-7). A connection never waits for its record and never fails because of it;
// entries per agent are limited.
import { isIP } from "node:net";
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import {
  endConnection,
  endConnectionsAmong,
  endConnectionsBefore,
  endReportedConnection,
  endServerConnections,
  endServerConnectionsOfPart,
  insertConnection,
  type NewConnectionRow,
} from "#db/connections/connections.ts";
import type { Statement } from "#db/engine/sql.ts";
import type { Store } from "#db/engine/store.ts";
import type { ConnectionType } from "#schema/connections.ts";
import { type AgentAccessRow, findAgentById } from "../agents/find.ts";

/** Who connects, as far as known. */
export type ConnectedBy = {
  readonly user_id: string | null;
  readonly ip: string | null;
  readonly user_agent: string;
};

export type NewConnection = ConnectedBy & {
  readonly agent_id: string;
  readonly type: ConnectionType;
  readonly target?: string;
  /** The agent's ID for the connection; a connection to the server has none. */
  readonly connection_id?: string;
  /** Milliseconds since 1970; default: now. */
  readonly at?: number;
  /** Status of the first response. */
  readonly status_code?: number;
};

/** Records why and when the connection ended; default: now. */
export type End = (reason: string, how?: { readonly at: number }) => void;

/** New connections recorded per agent and minute; beyond that, one line in the server's log. */
const MAX_PER_MINUTE = 300;
const MINUTE_MS = 60_000;
const MAX_REASON_CHARS = 1024;
/** Maximum agents whose rate is tracked. */
const MAX_AGENTS = 10_000;

/** `isAlone`: no other node records connections at the same time. */
type Deps = { readonly store: Store; readonly clock: Clock; readonly isAlone?: boolean };
/** Statements with the `part` of their workspace. */
type OwnedStatements = { readonly statements: readonly Statement[]; readonly part: number | undefined };
const NO_STATEMENTS: OwnedStatements = { statements: [], part: undefined };
type Rate = { since: number; count: number };

export class ConnectionLogger {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #rates = new Map<string, Rate>();
  readonly #writing = new Set<Promise<void>>();
  /** IDs of the connections to this server. */
  readonly #openIds = new Set<string>();
  readonly #isAlone: boolean;
  #isStopped = false;

  constructor({ store, clock, isAlone = true }: Deps) {
    this.#isAlone = isAlone;
    this.#store = store;
    this.#clock = clock;
  }

  /** Records a connection to the server itself; call the result once when it has ended. */
  begin(connection: NewConnection): End {
    const id = uuid();
    this.#openIds.add(id);
    let part: number | undefined;
    const started = this.#record(async () => {
      const created = await this.#insert(id, connection);
      part = created.part;
      return created;
    });
    return (reason, how) => {
      if (!this.#isStopped) this.#openIds.delete(id);
      const ended = {
        id,
        disconnect_time: how?.at ?? this.#clock.now(),
        disconnect_reason: reason.slice(0, MAX_REASON_CHARS),
      };
      void started.then(() => this.#record(async () => ({ statements: [endConnection(ended)], part })));
    };
  }

  /** Records a connection reported by an agent. Resolves when it is stored; repeated reports have no effect. */
  async recordReported(connection: NewConnection & { readonly connection_id: string }): Promise<void> {
    const { statements, part } = await this.#insert(uuid(), connection);
    if (statements.length > 0) await this.#store.commit(statements, { of: part });
  }

  /** Records the end of a connection; does nothing if it is unknown. */
  async recordReportedEnd(
    { agent_id, connection_id }: { readonly agent_id: string; readonly connection_id: string },
    reason: string,
    status_code: number,
    at: number,
  ): Promise<void> {
    const disconnect_reason = reason.slice(0, MAX_REASON_CHARS);
    const ending = { disconnect_time: at, disconnect_reason, status_code };
    const ended = endReportedConnection({ agent_id, connection_id, ...ending });
    await this.#store.commit([ended], { of: await this.#findPart(agent_id) });
  }

  /** Ends all connections that an earlier process of the agent has reported. */
  async endEarlier(agent_id: string, at = this.#clock.now()): Promise<void> {
    const disconnect_reason = "the workspace's agent was started again";
    const ended = endConnectionsBefore({ agent_id, before: at, disconnect_time: at, disconnect_reason });
    await this.#store.commit([ended], { of: await this.#findPart(agent_id) });
  }

  /** Ends the connections of an earlier server process. Called before this one accepts any. */
  async recover(): Promise<void> {
    await this.#store.commit([this.#endAllOpen()]);
  }

  /**
   * Ends the connections that another node had to workspaces with these `parts`, except connections that this node has accepted since it
   * owns them.
   */
  async takeOver(parts: readonly number[]): Promise<void> {
    const but = JSON.stringify([...this.#openIds]);
    const ending = this.#makeEnding();
    await Promise.all(
      parts.map((part) => this.#store.commit([endServerConnectionsOfPart({ ...ending, part, but })], { of: part })),
    );
  }

  /** Ends the server's own connections and stops recording. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.flush();
    const ids = JSON.stringify([...this.#openIds]);
    await this.#store.commit([
      this.#isAlone ? this.#endAllOpen() : endConnectionsAmong({ ...this.#makeEnding(), ids }),
    ]);
  }

  /** Resolves when everything recorded so far is stored. */
  async flush(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing);
  }

  #endAllOpen(): Statement {
    return endServerConnections(this.#makeEnding());
  }

  #makeEnding() {
    return { disconnect_time: this.#clock.now(), disconnect_reason: "the server was stopped" };
  }

  async #findPart(agent_id: string): Promise<number | undefined> {
    return (await findAgentById(this.#store, agent_id))?.part;
  }

  async #insert(id: string, connection: NewConnection): Promise<OwnedStatements> {
    const { agent_id, at = this.#clock.now() } = connection;
    if (!this.#isWithinRate(agent_id)) return NO_STATEMENTS;
    const agent = await findAgentById(this.#store, agent_id);
    if (!agent) return NO_STATEMENTS;
    return { statements: [insertConnection(toRow(id, at, agent, connection))], part: agent.part };
  }

  #record(make: () => Promise<OwnedStatements>): Promise<void> {
    if (this.#isStopped) return Promise.resolve();
    const writing = this.#commit(make).finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    return writing;
  }

  async #commit(make: () => Promise<OwnedStatements>): Promise<void> {
    try {
      const { statements, part } = await make();
      if (statements.length > 0) await this.#store.commit(statements, { of: part });
    } catch (error) {
      log("connections").warn("cannot record a connection: {error}", { error });
    }
  }

  #isWithinRate(agent_id: string): boolean {
    const now = this.#clock.monotonic();
    let rate = this.#rates.get(agent_id);
    if (!rate || now - rate.since >= MINUTE_MS) {
      if (this.#rates.size >= MAX_AGENTS) this.#rates.clear();
      rate = { since: now, count: 0 };
      this.#rates.set(agent_id, rate);
    }
    rate.count += 1;
    if (rate.count === MAX_PER_MINUTE + 1) {
      log("connections").warn(
        "agent {agent_id} has more than {most} new connections a minute: further ones are not recorded",
        {
          agent_id,
          most: MAX_PER_MINUTE,
        },
      );
    }
    return rate.count <= MAX_PER_MINUTE;
  }
}

const toRow = (id: string, at: number, agent: AgentAccessRow, connection: NewConnection): NewConnectionRow => {
  const { type, user_id, ip, user_agent, target = "", connection_id = null, status_code = null } = connection;
  return {
    id,
    connect_time: at,
    type,
    organization_id: agent.organization_id,
    workspace_id: agent.workspace_id,
    workspace_name: agent.workspace_name,
    owner_id: agent.owner_id,
    agent_id: agent.agent_id,
    agent_name: agent.agent_name,
    connection_id,
    status_code,
    user_id,
    ip: ip !== null && isIP(ip) !== 0 ? ip : null,
    user_agent: user_agent.slice(0, MAX_REASON_CHARS),
    target: target.slice(0, MAX_REASON_CHARS),
  };
};
