// The one place where things are constructed, and taken down in reverse order. Tests pass another clock or other parts here.
import type { Events } from "#actors/events.ts";
import { Scheduler } from "#actors/scheduler.ts";
import { type Clock, systemClock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { log } from "#base/log.ts";
import { Topics } from "#base/topics.ts";
import { openLocalStore } from "#db/local.ts";
import type { Store } from "#db/store.ts";
import type { ApiContext } from "./api/context.ts";
import { OpenStreams } from "./api/open-streams.ts";
import { Requests } from "./api/requests.ts";
import { Sockets } from "./api/socket.ts";

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
  readonly scheduler: Scheduler;
  accessUrl = new URL("http://localhost/");
  draining = false;

  constructor(options: ContextOptions, store: Store) {
    this.config = options.config;
    this.clock = options.clock ?? systemClock;
    this.store = store;
    this.sockets = new Sockets(this.clock);
    this.requests = new Requests(this.clock, this.config.max_connections);
    this.scheduler = new Scheduler(
      store,
      this.clock,
      async () => {},
      () => {},
    );
  }

  /** The link to the setup page while there is no user yet. */
  setupUrl(_url: URL): string | undefined {
    return undefined;
  }

  /** Called once the server listens and its URL is known. */
  async started(): Promise<void> {
    this.scheduler.start();
  }

  /** Refuses new messages and waits until every waiting one is answered and on disk. */
  async drain(): Promise<void> {
    this.scheduler.stop();
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
  return new Context(options, store);
};
