// The server log: its last lines by level, and new ones as they arrive.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import type { ServerLogLine } from "#schema/administration/server-log.ts";
import { LiveSocket } from "../../data/live-socket.ts";
import { LogFeed } from "../../data/logs.ts";
import { Options } from "../../parts/field.tsx";
import { LogView } from "../../parts/log-view.tsx";

const LEVELS = [
  { value: "debug", label: "All" },
  { value: "info", label: "Info" },
  { value: "warn", label: "Warnings" },
  { value: "error", label: "Errors" },
];

export const Logs = () => {
  const { query, route } = useLocation();
  const level = LEVELS.find(({ value }) => value === query.level)?.value ?? "info";
  const feed = useMemo(() => new LogFeed(), [level]);
  const areas = useSignal<readonly string[]>([]);
  useEffect(() => {
    let lastId = 0;
    const knownAreas = new Set<string>();
    const socket = new LiveSocket({
      address: () => `/api/v2/deployment/logs/watch?${new URLSearchParams({ level, after_id: String(lastId) })}`,
      pings: true,
      onMessage: (text) => {
        const lines = JSON.parse(text) as ServerLogLine[] | { type: "ping" };
        if (!Array.isArray(lines)) return;
        lastId = lines.at(-1)?.id ?? lastId;
        feed.add(
          lines.map(({ area, time, text, level }) => ({
            source: area,
            at: time,
            text: `${level.toUpperCase().padEnd(5)} ${area}: ${text}`,
            isBad: level === "error",
          })),
        );
        const countBefore = knownAreas.size;
        for (const { area } of lines) knownAreas.add(area);
        if (knownAreas.size > countBefore) areas.value = [...knownAreas].sort();
      },
    });
    return () => {
      socket.end();
      areas.value = [];
    };
  }, [level]);
  return (
    <section class="stack" aria-label="Log">
      <Options
        label="Level"
        value={level}
        choices={LEVELS}
        hint="The last 2,000 lines since the server started. Values that look like secrets are redacted."
        onPick={(value) => route(`/admin/logs?${new URLSearchParams({ level: value })}`, true)}
      />
      <LogView
        key={level}
        title="Server log"
        feed={feed}
        sources={areas.value}
        file="slipway.log"
        empty="No log entries at this level yet."
      />
    </section>
  );
};
