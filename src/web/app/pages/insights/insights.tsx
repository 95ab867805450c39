// Deployment insights: users and apps, builds, chats and their cost, latency. Each section has its own address.
import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useLocation, useRoute } from "preact-iso/router";
import { Empty } from "../../parts/empty.tsx";
import { writeTo } from "../../parts/handlers.ts";
import { Tabs } from "../../parts/sections.tsx";
import { Frame } from "../../shell/frame.tsx";
import { AiUsagePart } from "./ai-usage.tsx";
import { Builds } from "./builds.tsx";
import { Chats } from "./chats.tsx";
import { ChooseRange, LOCAL_TIME_ZONE } from "./choose-range.tsx";
import type { Sheet } from "./csv.ts";
import { Latency } from "./latency.tsx";
import type { PartProps } from "./part.tsx";
import { SheetButton } from "./sheet-button.tsx";
import { UsagePart } from "./use.tsx";
import { useRange } from "./use-range.ts";

const PARTS: readonly { readonly tab: string; readonly label: string; readonly part: ComponentType<PartProps> }[] = [
  { tab: "", label: "Usage", part: UsagePart },
  { tab: "builds", label: "Builds", part: Builds },
  { tab: "chats", label: "Chats and cost", part: Chats },
  { tab: "ai-usage", label: "AI usage", part: AiUsagePart },
  { tab: "latency", label: "Latency", part: Latency },
];

export default function InsightsPage() {
  const { params } = useRoute();
  const { url } = useLocation();
  const range = useRange();
  const sheet = useSignal<Sheet | undefined>(undefined);
  const openPart = PARTS.find(({ tab }) => tab === (params.tab ?? ""));
  const Part = openPart?.part;
  const query = url.includes("?") ? url.slice(url.indexOf("?")) : "";
  return (
    <Frame
      title="Insights"
      actions={
        <>
          <ChooseRange range={range} />
          <SheetButton name={openPart?.tab || "use"} range={range} sheet={sheet} />
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
        open={openPart?.tab}
      />
      <div class="page">
        {Part ? (
          <>
            <Part key={`${openPart?.tab} ${range.query.start_time}`} range={range} onSheet={writeTo(sheet)} />
            <p class="dim small">
              Days in {range.isUtc ? "UTC" : LOCAL_TIME_ZONE}.
              {openPart?.tab === "" && " Users are counted by connections, not by sign-ins."}
            </p>
          </>
        ) : (
          <Empty icon="search" title="Section not found" text="The URL doesn't match any section." />
        )}
      </div>
    </Frame>
  );
}
