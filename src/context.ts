// The one place where things are constructed, and taken down in reverse order. Tests pass another clock or other parts here.
import { AgentActor } from "#actors/agent/agent-actor.ts";
import { Directory } from "#actors/directory.ts";
import type { Events } from "#actors/events.ts";
import { Scheduler } from "#actors/scheduler.ts";
import { type Clock, systemClock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { log } from "#base/log.ts";
import { Topics } from "#base/topics.ts";
import { openLocalStore } from "#db/local.ts";
import type { Store } from "#db/store.ts";
import { Addresses } from "./api/address.ts";
import type { ApiContext } from "./api/context.ts";
import { OpenStreams } from "./api/open-streams.ts";
import { Requests } from "./api/requests.ts";
import { Sockets } from "./api/socket.ts";
import { Accounts } from "./api/users/accounts.ts";
import { prepareIdentity } from "./api/users/first-user.ts";

export type ContextOptions = {
  config: Config;
  clock?: Clock;
  /** Aborted by a part that finds the process unfit to go on; src/main.ts exits non-zero. */
  fatal?: (error: Error) => void;
  store?: Store;
  /** Messages to actors are copied, to prove that they are plain data: tests only. */
  copyMessages?: boolean;
};

export class Context implements ApiContext, AsyncDisposable {
  readonly config: Config;
  readonly clock: Clock;
  readonly store: Store;
  readonly topics = new Topics<Events>();
  readonly sockets: Sockets;
  readonly requests: Requests;
  readonly streams = new OpenStreams();
  readonly accounts: Accounts;
  readonly addresses: Addresses;
  readonly agents: Directory<AgentActor>;
  readonly scheduler: Scheduler;
  accessUrl = new URL("http://localhost/");
  draining = false;

  constructor(options: ContextOptions, store: Store) {
    this.config = options.config;
    this.clock = options.clock ?? systemClock;
    this.store = store;
    this.sockets = new Sockets(this.clock);
    this.requests = new Requests(this.clock, this.config.max_connections);
    this.accounts = new Accounts(this.clock);
    this.addresses = new Addresses(this.config.trusted_proxies, (request) => this.requests.peerOf(request));
    const copy = options.copyMessages ? structuredClone : undefined;
    this.agents = new Directory(
      (id) =>
        new AgentActor(id, {
          store,
          clock: this.clock,
          topics: this.topics,
          log_limit: this.config.agent_log_limit,
        }),
      this.clock,
      { copy },
    );
    this.scheduler = new Scheduler(
      store,
      this.clock,
      async () => {},
      () => this.agents.sweep(),
    );
  }

  /** The link to the setup page while there is no user yet. */
  setupUrl(_url: URL): string | undefined {
    if (!this.accounts.setupNeeded) return undefined;
    const url = new URL("/setup", this.accessUrl);
    url.searchParams.set("token", this.accounts.setup.offer());
    return url.href;
  }

  /** Called before the server listens: what a fresh data directory lacks is made. */
  async prepare(): Promise<void> {
    const { store, clock, accounts } = this;
    accounts.setupNeeded = await prepareIdentity({ store, clock, passwords: accounts.passwords }, this.config);
  }

  /** Called once the server listens and its URL is known. */
  async started(): Promise<void> {
    this.scheduler.start();
  }

  /** Refuses new messages and waits until every waiting one is answered and on disk. */
  async drain(): Promise<void> {
    this.scheduler.stop();
    await this.agents.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.scheduler.stop();
    await this.store.close();
  }
}

/** Opens the data directory and builds everything on it. */
export const openContext = async (options: ContextOptions): Promise<Context> => {
  const clock = options.clock ?? systemClock;
  const store =
    options.store ??
    openLocalStore({
      directory: options.config.data_dir,
      cacheMb: options.config.database_cache_mb,
      now: clock.now(),
      fatal: (error) => {
        log("db").fatal("the data can no longer be written safely; stopping", { error });
        options.fatal?.(error);
      },
    });
  const context = new Context(options, store);
  try {
    await context.prepare();
    return context;
  } catch (error) {
    await context[Symbol.asyncDispose]();
    throw error;
  }
};
