// `GET me/reinit`: the agent of a prebuilt workspace waits here until the workspace is claimed, and then starts over (facts/platform 5.4,
// rules RI-1 to RI-4, PB-9). The event belongs to the build of the claim: it is sent when that build succeeds. While that build is the
// latest, it is also sent to callers that set `wait`, and to an agent that has not started. All others get 409, which means: do not retry.
import { t } from "elysia";
import { isClaim } from "#actors/workspace/claim.ts";
import { AppError, conflict } from "#base/errors.ts";
import { findAgent } from "#db/agents/agents.ts";
import { findBuild } from "#db/workspaces/builds.ts";
import { findJob } from "#db/workspaces/jobs.ts";
import { findAgentById, isLatest } from "#domain/agents/find.ts";
import { ReinitEvent } from "#schema/agents/reinit.ts";
import { isActive, toJobStatus } from "#schema/workspaces/job.ts";
import { PREBUILDS_USER_ID } from "#schema/workspaces/prebuilds.ts";
import type { ApiContext } from "../context.ts";
import { type AgentCaller, callers } from "../http/caller.ts";
import { eventStream } from "../http/event-stream.ts";
import { toHolder } from "../http/holders.ts";
import { operation } from "../http/operation.ts";
import { flagQuery, parseFlag } from "../http/query.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

export const agentReinit = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/me/reinit",
      async ({ caller, query, request }) => {
        const includesKnownClaim = parseFlag(query.wait);
        const claim = new Claim(ctx, caller, request);
        try {
          // The subscription must exist before this read, or a claim made in between would be lost.
          await claim.checkState(includesKnownClaim);
          if (acceptsEvents(request, caller)) return streamEvents(ctx, request, claim);
          ctx.requests.exempt(request);
          return await claim.waitForEvent(request.signal);
        } catch (error) {
          claim.dispose();
          throw error;
        }
      },
      {
        agent: true,
        query: t.Object({ wait: flagQuery("Also report a claim that the agent already knows about.") }),
        response: { 200: ReinitEvent, ...fails(400, 401, 409, 503) },
        detail: operation({
          tags: ["Agents"],
          operationId: "awaitReinit",
          access: "agent",
          summary: "Wait for a prebuilt workspace to be claimed",
          description:
            "For agents of prebuilt workspaces. With `Accept: text/event-stream`, an event stream that ends after one event; otherwise, a JSON response when the workspace is claimed. Returns 409 if the workspace will not be claimed: don't retry.",
          sends: ReinitEvent,
          placement: "token",
        }),
      },
    );

const makeNoClaimError = (): AppError => conflict("There is no pending claim for this workspace.");

/** Upstream agents read events without sending the Accept header. */
const acceptsEvents = (request: Request, { compat }: AgentCaller): boolean =>
  compat || (request.headers.get("accept") ?? "").includes("text/event-stream");

const streamEvents = (ctx: ApiContext, request: Request, claim: Claim): Response =>
  eventStream(ctx, request, (stream) => {
    void claim.settled.then((event) => {
      if (event) stream.send("data", JSON.stringify(event));
      stream.end();
    });
    return () => claim.dispose();
  });

/** `isSilent`: true while the agent that the claim created has not reported anything. */
type ClaimState =
  | { readonly phase: "waiting" }
  | { readonly phase: "none" }
  | { readonly phase: "done"; readonly owner_id: string; readonly isSilent: boolean };

/**
 * Waits until a workspace is claimed and the claim's build has succeeded (resolves with the event), or until that can no longer happen
 * (resolves with undefined). The claim replaces the agent, so the state is read again when the agent goes away.
 */
class Claim {
  readonly settled: Promise<ReinitEvent | undefined>;
  readonly #cleanups: (() => void)[];
  readonly #settle: (event: ReinitEvent | undefined) => void;
  readonly #ctx: ApiContext;
  readonly #caller: AgentCaller;
  #isOver = false;

  constructor(ctx: ApiContext, caller: AgentCaller, request: Request) {
    const { topics, streams } = ctx;
    const { agent_id, workspace_id } = caller;
    this.#ctx = ctx;
    this.#caller = caller;
    const { promise, resolve } = Promise.withResolvers<ReinitEvent | undefined>();
    this.settled = promise;
    this.#settle = (event) => {
      this.#isOver = true;
      this.dispose();
      resolve(event);
    };
    const checkState = (): void => void this.#recheck();
    this.#cleanups = [
      // Must be first, because `add` can throw.
      streams.add({ end: () => this.#settle(undefined), ping: () => {}, isPoll: true }, toHolder(caller), request),
      topics.subscribe("reinit", workspace_id, ({ owner_id }) => this.#onClaimed(owner_id)),
      topics.subscribe("workspace", workspace_id, checkState),
      topics.subscribe("agent_gone", agent_id, checkState),
    ];
  }

  /**
   * Checks the stored state. Throws 409 when there is nothing to wait for. Reports a finished claim if `includesKnownClaim`, or if the new
   * agent has not started and therefore cannot know of the claim, even if an earlier call returned it.
   */
  async checkState(includesKnownClaim: boolean): Promise<void> {
    const state = await this.#findState();
    if (this.#isOver || state.phase === "waiting") return;
    if (state.phase === "none") throw makeNoClaimError();
    if (!includesKnownClaim && !state.isSilent) throw makeNoClaimError();
    this.#onClaimed(state.owner_id);
  }

  async #recheck(): Promise<void> {
    try {
      const state = await this.#findState();
      if (state.phase === "done") this.#onClaimed(state.owner_id);
      else if (state.phase === "none") this.#settle(undefined);
    } catch {
      // The client retries and gets the state that is stored by then.
      this.#settle(undefined);
    }
  }

  /** Uses the latest build of the workspace, because the claim may just have replaced the caller's build. */
  async #findState(): Promise<ClaimState> {
    const { store } = this.#ctx;
    const current = await findAgentById(store, this.#caller.agent_id);
    if (!current || current.deleted) return { phase: "none" };
    if (current.owner_id === PREBUILDS_USER_ID) return { phase: isLatest(current) ? "waiting" : "none" };
    const build = await store.get(findBuild({ id: current.latest_build_id }));
    const job = build && (await store.get(findJob({ id: build.job_id })));
    if (!build || !job || !(await isClaim(store, current, build))) return { phase: "none" };
    if (isActive(job)) return { phase: "waiting" };
    if (toJobStatus(job) !== "succeeded") return { phase: "none" };
    const agent = isLatest(current) ? await store.get(findAgent({ id: current.agent_id })) : undefined;
    return { phase: "done", owner_id: current.owner_id, isSilent: !agent || agent.lifecycle_state === "created" };
  }

  #onClaimed(owner_id: string): void {
    this.#settle({ reason: "prebuild_claimed", workspace_id: this.#caller.workspace_id, owner_id });
  }

  /**
   * Returns the event. Rejects with 503 when the wait ended without one: the server stops, another build took over, or the caller hung up.
   */
  async waitForEvent(signal: AbortSignal): Promise<ReinitEvent> {
    if (signal.aborted) this.#settle(undefined);
    signal.addEventListener("abort", () => this.#settle(undefined), { once: true });
    const event = await this.settled;
    if (event) return event;
    throw new AppError("overloaded", "The wait ended without a claim.");
  }

  dispose(): void {
    for (const cleanUp of this.#cleanups.splice(0)) cleanUp();
  }
}
