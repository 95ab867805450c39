// Responds to a person who opens an app of a workspace that is not running: starts a stopped workspace and shows a progress page that
// continues into the app. The page reloads with the ID of the build it waits for, so that a reload never starts the workspace a second time
// (rules WO-1 to WO-7).
import { AppError } from "#base/errors.ts";
import type { AppName } from "#base/links/app-label.ts";
import { COMMON_HEADERS } from "#base/network/common-headers.ts";
import type { Refusal, ResolvedApp } from "#domain/applications/find.ts";
import {
  type AgentStage,
  type AwaitedWorkspace,
  findAgentStage,
  findAwaited,
  findProgress,
} from "#domain/applications/waiting.ts";
import { wakeWorkspace } from "#domain/builds/wake.ts";
import type { ApiContext } from "../context.ts";
import { renderPlainPage, renderWaitingPage, type Step } from "../http/plain-page.ts";
import type { AppCaller } from "./hand-over.ts";
import { isOpeningPage, isPage, WAIT_PARAMETER } from "./opening.ts";

/** Who opens which app. `url` is the URL without Slipway's own parameters, on the same host. */
export type Opening = {
  readonly name: AppName;
  readonly appCaller: AppCaller | undefined;
  readonly url: string;
};

/** Timeout for checking whether a port accepts connections. */
const PROBE_TIMEOUT_MS = 3_000;

export class AppWaiting {
  readonly #ctx: ApiContext;

  constructor(ctx: ApiContext) {
    this.#ctx = ctx;
  }

  /** Returns the waiting page or a redirect to the app; undefined when the request is handled normally. */
  async answer(request: Request, opening: Opening, app: ResolvedApp | Refusal): Promise<Response | undefined> {
    const awaitedBuild = new URL(request.url).searchParams.get(WAIT_PARAMETER) ?? undefined;
    if (!isPage(request)) return undefined;
    if (typeof app !== "string") return awaitedBuild === undefined ? undefined : this.#continueWaiting(app, opening);
    const awaitedWorkspace = await findAwaited(this.#ctx, opening.name, opening.appCaller?.caller);
    if (!awaitedWorkspace) return undefined;
    const { state, build_id } = awaitedWorkspace;
    // A page that waits for the workspace to stop was opened by a person, too.
    const mayWake = awaitedBuild === undefined ? isOpeningPage(request) : awaitedBuild === build_id;
    if (state === "stopped" && mayWake) return this.#wake(opening, awaitedWorkspace);
    if (state === "stopped") return this.#renderStoppedPage(opening, "It was stopped. Start it to open the app.");
    if (state === "failed" && awaitedWorkspace.isUser) return this.#renderFailedPage(opening, build_id);
    if (state !== "starting" && state !== "stopping") return undefined;
    return awaitedBuild === build_id
      ? this.#renderProgressPage(awaitedWorkspace)
      : redirectToWait(opening.url, build_id);
  }

  /** Returns the waiting page for an app that does not respond but may still start. */
  async findWaitingPage(
    request: Request,
    { url }: Opening,
    { agent_id, build_id }: ResolvedApp,
  ): Promise<Response | undefined> {
    if (!isPage(request)) return undefined;
    return (await findAgentStage(this.#ctx, agent_id)) === "open" ? undefined : redirectToWait(url, build_id);
  }

  async #wake(opening: Opening, { workspace_id, isUser }: AwaitedWorkspace): Promise<Response | undefined> {
    const { appCaller, url } = opening;
    if (appCaller && !appCaller.mayStart) return undefined;
    const input = { caller: appCaller?.caller, isVisitor: !isUser, reason: "dashboard" } as const;
    try {
      const { state, build_id } = await wakeWorkspace(this.#ctx, workspace_id, input);
      return state === "dormant" || state === "deleted" ? undefined : redirectToWait(url, build_id);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return isUser
        ? this.#renderStoppedPage(opening, [error.message, error.detail].filter(Boolean).join(" "))
        : undefined;
    }
  }

  /** Handles a running workspace: redirects to the app once its port accepts connections, and shows the waiting page until then. */
  async #continueWaiting({ agent_id, port }: ResolvedApp, { url, name }: Opening): Promise<Response> {
    const stage = await findAgentStage(this.#ctx, agent_id);
    if (stage === "open") return redirect(url);
    if (stage !== "connecting" && (await this.#acceptsConnections(agent_id, port))) return redirect(url);
    return renderStepPage(name.workspace, stage === "connecting" ? "connect" : "open", STAGE_NOTES[stage]);
  }

  async #acceptsConnections(agent_id: string, port: number): Promise<boolean> {
    const timeout = new AbortController();
    const timer = this.#ctx.clock.after(PROBE_TIMEOUT_MS, () => timeout.abort());
    try {
      (await this.#ctx.dialer.dial(agent_id, port, timeout.signal)).reset();
      return true;
    } catch {
      return false;
    } finally {
      timer.cancel();
    }
  }

  async #renderProgressPage({ name, state, isUser, build_id }: AwaitedWorkspace): Promise<Response> {
    const { isQueued, line } = await findProgress(this.#ctx, build_id);
    const note = isQueued ? "The build is queued." : isUser ? line : "";
    return renderStepPage(name, state === "stopping" ? "stop" : "start", note);
  }

  #renderStoppedPage({ url }: Opening, text: string): Response {
    const action = { href: url, text: "Start" };
    return this.#renderMessagePage({ status: 503, title: "The workspace is stopped", text, action });
  }

  async #renderFailedPage({ url }: Opening, build_id: string): Promise<Response> {
    const { error } = await findProgress(this.#ctx, build_id);
    const text = error === "" ? "Its last build failed." : `Its last build failed: ${error}`;
    return this.#renderMessagePage({
      status: 503,
      title: "The workspace did not start",
      text,
      action: { href: url, text: "Try again" },
    });
  }

  #renderMessagePage(content: {
    status: number;
    title: string;
    text: string;
    action: { href: string; text: string };
  }): Response {
    const headers = new Headers(COMMON_HEADERS);
    headers.set("retry-after", "5");
    return renderPlainPage({ ...content, home: `${this.#ctx.accessUrl.origin}/` }, headers);
  }
}

const STEPS = [
  ["stop", "Finish stopping"],
  ["start", "Start the workspace"],
  ["connect", "Connect to its agent"],
  ["open", "Open the app"],
] as const;

const STAGE_NOTES: Record<AgentStage, string> = {
  connecting: "",
  scripts: "Startup scripts are running.",
  opening: "The app is not responding yet.",
  open: "",
};

/** Returns the waiting page with the current step; earlier steps are marked done. */
const renderStepPage = (name: string, currentStep: (typeof STEPS)[number][0], note: string): Response => {
  const shownSteps = STEPS.filter(([step]) => step !== "stop" || currentStep === "stop");
  const currentIndex = shownSteps.findIndex(([step]) => step === currentStep);
  const steps = shownSteps.map(
    ([, text], i): Step => ({ text, state: i < currentIndex ? "done" : i === currentIndex ? "now" : "later" }),
  );
  const headers = new Headers(COMMON_HEADERS);
  headers.set("retry-after", "2");
  return renderWaitingPage({ title: `Starting ${name}`, steps, note }, headers);
};

const HEADERS = { "cache-control": "no-store", "referrer-policy": "no-referrer" };

/** Redirects to the page that waits for a build. A redirect, so that the browser's Back button skips it. */
const redirectToWait = (url: string, build_id: string): Response => {
  const location = `${url}${url.includes("?") ? "&" : "?"}${WAIT_PARAMETER}=${build_id}`;
  return new Response(null, { status: 307, headers: { location, ...HEADERS } });
};

const redirect = (location: string): Response => new Response(null, { status: 307, headers: { location, ...HEADERS } });
