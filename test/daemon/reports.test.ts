import { describe, expect, test } from "bun:test";
import type { AgentApi } from "#src/daemon/connection/connection.ts";
import { Reports } from "#src/daemon/connection/reports.ts";
import { Lifecycle } from "#src/daemon/scripts/lifecycle.ts";
import { RpcError } from "#src/wire/drpc/frame.ts";
import { Lifecycle_State } from "#src/wire/gen/agent_pb.ts";
import { nextTurn, runUntil, WatchedClock } from "./support/clock.ts";

type Request = { lifecycle: { state: Lifecycle_State; changedAt: { seconds: bigint } } };

/** Returns a lifecycle over a connection that responds with `answer`. `reported` lists the received states with their seconds. */
const openLifecycle = (answer: (state: string) => unknown = () => ({})) => {
  const clock = new WatchedClock();
  const reported: string[] = [];
  const updateLifecycle = async ({ lifecycle }: Request) => {
    const state = Lifecycle_State[lifecycle.state].toLowerCase();
    reported.push(`${state} ${lifecycle.changedAt.seconds}`);
    return answer(state);
  };
  const api = { updateLifecycle } as unknown as AgentApi;
  const ask = <T>(call: (api: AgentApi, signal: AbortSignal) => Promise<T>): Promise<T> =>
    call(api, new AbortController().signal);
  const reports = new Reports({ connection: { ask }, clock, random: () => 0 });
  return { clock, reported, reports, lifecycle: new Lifecycle({ reports, clock }) };
};

describe("reports to the server", () => {
  test("[DM-4] are delivered one at a time, in order, with their time", async () => {
    const gate = Promise.withResolvers<void>();
    const { clock, reported, reports, lifecycle } = openLifecycle((state) =>
      state === "starting" ? gate.promise : {},
    );
    lifecycle.enter("starting");
    await clock.advance(5_000);
    lifecycle.enter("ready");
    await clock.advance(60_000);
    expect(reported).toEqual(["starting 0"]);
    gate.resolve();
    await reports.flush();
    expect(reported).toEqual(["starting 0", "ready 5"]);
  });

  test("[DM-4] are retried up to five times when refused, then the next ones follow", async () => {
    const { clock, reported, reports, lifecycle } = openLifecycle((state) => {
      if (state === "starting") throw new RpcError(0, "no");
    });
    lifecycle.enter("starting");
    lifecycle.enter("ready");
    await runUntil(clock, reports.flush());
    expect(reported).toEqual([...Array.from({ length: 5 }, () => "starting 0"), "ready 0"]);
  });

  test("[DM-4] are queued up to a thousand", async () => {
    const gate = Promise.withResolvers<void>();
    const { reports } = openLifecycle();
    let delivered = 0;
    for (let i = 0; i < 1_200; i++) {
      void reports.add("one", async () => {
        await gate.promise;
        delivered += 1;
      });
    }
    gate.resolve();
    await reports.flush();
    expect(delivered).toBe(1_000);
  });

  test("[DM-5] the newest state is sent again to a new connection, unless it is still queued", async () => {
    const gate = Promise.withResolvers<void>();
    const { reported, reports, lifecycle } = openLifecycle(() => gate.promise);
    lifecycle.resend();
    lifecycle.enter("ready");
    lifecycle.resend();
    await nextTurn();
    gate.resolve();
    await reports.flush();
    lifecycle.resend();
    await reports.flush();
    expect(reported).toEqual(["ready 0", "ready 0"]);
  });
});
