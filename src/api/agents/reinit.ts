// `GET me/reinit`: an agent of a prepared workspace waits here for whoever gets it, and then begins anew (facts/platform 5.4, rules RI-1
// to RI-4, PB-9). The event belongs to the build of the claim: it comes when that has ended well, and again to whoever asks while it is
// the latest. Every other workspace is answered 409: do not ask again.
import { Elysia, t } from "elysia";
import { isClaim } from "#actors/workspace/claim.ts";
import { AppError, conflict } from "#base/errors.ts";
import { findBuild } from "#db/builds.ts";
import { findJob } from "#db/jobs.ts";
import { isActive, jobStatus } from "#schema/job.ts";
import { PREBUILDS_USER_ID } from "#schema/prebuilds.ts";
import { ReinitEvent } from "#schema/reinit.ts";
import { type AgentCaller, callers } from "../caller.ts";
import type { ApiContext } from "../context.ts";
import { eventStream } from "../event-stream.ts";
import { flagOf, flagQuery } from "../query-flag.ts";
import { fails } from "../responses.ts";
import { placeOf } from "./place.ts";

export const agentReinit = (ctx: ApiContext) =>
  new Elysia().use(callers).get(
    "/me/reinit",
    async ({ caller, query, request }) => {
      const isDurable = flagOf("wait", query.wait);
      const claim = new Claim(ctx, caller);
      try {
        // Heard before it is looked at, or a claim in between would be lost.
        await claim.look(isDurable);
        if (wantsEvents(request, caller)) return streamOf(ctx, request, claim);
        ctx.requests.exempt(request);
        return await claim.answered(request.signal);
      } catch (error) {
        claim.forget();
        throw error;
      }
    },
    {
      agent: true,
      query: t.Object({ wait: flagQuery("Also hear of a claim that came before this call.") }),
      response: { 200: ReinitEvent, ...fails(400, 401, 409, 503) },
      detail: {
        tags: ["Agents"],
        summary: "Wait until the workspace is given to somebody",
        description:
          "For agents of workspaces that are kept ready. With `Accept: text/event-stream` an event stream that ends after one event, else JSON once it happens. 409 means that it never will: do not ask again.",
      },
    },
  );

const notPrepared = (): AppError =>
  conflict("The workspace is not one that is kept ready: there is nothing to wait for.");

/** Genuine agents read events and do not say so. */
const wantsEvents = (request: Request, { compat }: AgentCaller): boolean =>
  compat || (request.headers.get("accept") ?? "").includes("text/event-stream");

const streamOf = (ctx: ApiContext, request: Request, claim: Claim): Response =>
  eventStream(ctx, request, (stream) => {
    void claim.settled.then((event) => {
      if (event) stream.send("data", JSON.stringify(event));
      stream.end();
    });
    return () => claim.forget();
  });

/** What one agent waits for: its workspace is claimed (the event), or it or the server goes (undefined). */
class Claim {
  readonly settled: Promise<ReinitEvent | undefined>;
  readonly #undo: (() => void)[];
  readonly #settle: (event: ReinitEvent | undefined) => void;
  readonly #ctx: ApiContext;
  readonly #caller: AgentCaller;
  #happened = false;

  constructor(ctx: ApiContext, caller: AgentCaller) {
    const { topics, streams } = ctx;
    const { agent_id, workspace_id } = caller;
    this.#ctx = ctx;
    this.#caller = caller;
    const { promise, resolve } = Promise.withResolvers<ReinitEvent | undefined>();
    this.settled = promise;
    this.#settle = (event) => {
      this.forget();
      resolve(event);
    };
    this.#undo = [
      // First, because it may refuse.
      streams.add({ end: () => this.#settle(undefined), ping: () => {} }, agent_id),
      topics.subscribe("reinit", workspace_id, ({ owner_id }) => this.#claimed(owner_id)),
      topics.subscribe("agent_gone", agent_id, () => this.#settle(undefined)),
    ];
  }

  /** Looks at what is on disk. Throws 409 when there is nothing to wait for; `isDurable`: a claim that is done counts, too. */
  async look(isDurable: boolean): Promise<void> {
    const { store, topics } = this.#ctx;
    const { agent_id, workspace_id } = this.#caller;
    const place = await placeOf(store, agent_id);
    if (this.#happened || place?.owner_id === PREBUILDS_USER_ID) return;
    const build = place && (await store.get(findBuild({ id: place.build_id })));
    const job = build && (await store.get(findJob({ id: build.job_id })));
    if (!place || !build || !job || !(await isClaim(store, place, build))) throw notPrepared();
    if (!isActive(job)) {
      if (!isDurable || jobStatus(job) !== "succeeded") throw notPrepared();
      this.#claimed(place.owner_id);
      return;
    }
    // A claim whose build fails ends the wait: whoever asks again is told.
    const look = async (): Promise<void> => {
      const now = await store.get(findJob({ id: job.id }));
      if (!now || isActive(now)) return;
      if (jobStatus(now) === "succeeded") this.#claimed(place.owner_id);
      else this.#settle(undefined);
    };
    this.#undo.push(topics.subscribe("workspace", workspace_id, () => void look()));
    await look();
  }

  #claimed(owner_id: string): void {
    this.#happened = true;
    this.#settle({ reason: "prebuild_claimed", workspace_id: this.#caller.workspace_id, owner_id });
  }

  /** The event. 503 when the agent's build or the server ended first, or the caller hung up. */
  async answered(signal: AbortSignal): Promise<ReinitEvent> {
    signal.addEventListener("abort", () => this.#settle(undefined), { once: true });
    const event = await this.settled;
    if (event) return event;
    throw new AppError("overloaded", "The wait has ended without a claim.");
  }

  forget(): void {
    for (const one of this.#undo.splice(0)) one();
  }
}
