// How the deployment is used: people and apps, builds, chats and what they cost, latency. Each part at an address of its own.
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useMemo } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import { Button } from "../../parts/button.tsx";
import { download } from "../../parts/download.ts";
import { Empty } from "../../parts/empty.tsx";
import { into } from "../../parts/handlers.ts";
import { Tabs } from "../../parts/sections.tsx";
import { Frame } from "../../shell/frame.tsx";
import { Builds } from "./builds.tsx";
import { Chats } from "./chats.tsx";
import { ChooseRange, HERE } from "./choose-range.tsx";
import { type Sheet, toCsv } from "./csv.ts";
import { Latency } from "./latency.tsx";
import type { PartProps } from "./part.tsx";
import { rangeFor } from "./range.ts";
import { Use } from "./use.tsx";

const PARTS: readonly { readonly tab: string; readonly label: string; readonly part: ComponentType<PartProps> }[] = [
  { tab: "", label: "Use", part: Use },
  { tab: "builds", label: "Builds", part: Builds },
  { tab: "chats", label: "Chats and cost", part: Chats },
  { tab: "latency", label: "Latency", part: Latency },
];

/** The range in the address. Kept while the hour lasts, so that what is drawn stays. */
export const useRange = () => {
  const { query } = useLocation();
  const hour = Math.floor(Date.now() / 3_600_000);
  return useMemo(
    () => rangeFor(query, Date.now(), -new Date().getTimezoneOffset()),
    [query.days, query.from, query.to, query.zone, hour],
  );
};

export default function InsightsPage() {
  const { params } = useRoute();
  const { url } = useLocation();
  const range = useRange();
  const sheet = useSignal<Sheet | undefined>(undefined);
  const chosen = PARTS.find(({ tab }) => tab === (params.tab ?? ""));
  const Part = chosen?.part;
  const query = url.includes("?") ? url.slice(url.indexOf("?")) : "";
  return (
    <Frame
      title="Insights"
      actions={
        <>
          <ChooseRange range={range} />
          <Button
            class="desk"
            look="ghost"
            icon="file"
            label="Download as CSV"
            disabled={sheet.value === undefined}
            onPress={() => {
              const name = `slipway-${chosen?.tab || "use"}-${range.first}-${range.last}.csv`;
              if (sheet.value) download(name, toCsv(sheet.value), "text/csv");
            }}
          >
            CSV
          </Button>
        </>
      }
    >
      <Tabs
        label="Insight sections"
        tabs={PARTS.map(({ tab, label }) => ({
          name: tab,
          label,
          href: `${tab ? `/insights/${tab}` : "/insights"}${query}`,
        }))}
        open={chosen?.tab}
      />
      <div class="page">
        {Part ? (
          <>
            <Part key={`${chosen?.tab} ${range.query.start_time}`} range={range} sheet={into(sheet)} />
            <p class="dim small">
              Days in {range.isUtc ? "UTC" : HERE}.
              {chosen?.tab === "" && " Users are counted by connections, not by sign-ins."}
            </p>
          </>
        ) : (
          <Empty icon="search" title="Section not found" text="The URL doesn't match any section." />
        )}
      </div>
    </Frame>
  );
}
