// How often traffic to apps is reported as activity of their workspace.
import { expect, test } from "bun:test";
import type { ResolvedApp } from "#domain/applications/find.ts";
import { AppActivity } from "#src/api/applications/activity.ts";
import { ManualClock } from "#test/support/manual-clock.ts";

test("[AX-14] traffic is reported once a minute per workspace and kind; only a person's use of ports extends the deadline", () => {
  const clock = new ManualClock();
  const reports: string[] = [];
  const extendDeadline = (id: string, _kind: string, { reason, by }: { reason: string; by?: { name: string } }) => {
    reports.push(`${id} ${reason} ${by?.name ?? "anonymous"}`);
    return Promise.resolve();
  };
  const activity = new AppActivity({ clock, workspaces: { ask: extendDeadline }, usage: { note: () => {} } } as never);
  const createApp = (workspace_id: string, isPort: boolean): ResolvedApp => ({
    workspace_id,
    isPort,
    slug: undefined,
    owner_id: "o",
    agent_id: "a",
    build_id: "b",
    port: 80,
    tls: false,
    base: { path: "/", query: "" },
    label: "",
    isPublic: false,
  });
  const ann = { kind: "user", user_id: "u", username: "ann" } as never;
  for (let i = 0; i < 50; i += 1) activity.note(createApp("one", false), ann);
  activity.note(createApp("one", true), ann);
  activity.note(createApp("one", true), undefined);
  activity.note(createApp("two", true), undefined);
  expect(reports).toEqual(["one app_traffic ann", "one port_forward ann", "two app_traffic anonymous"]);
  clock.advance(59_999);
  activity.note(createApp("one", false), ann);
  expect(reports).toHaveLength(3);
  clock.advance(1);
  activity.note(createApp("one", false), ann);
  expect(reports).toHaveLength(4);
});
