// The cost and usage of the user's model calls.
import { useSignal } from "@preact/signals";
import { me } from "../../data/session.ts";
import { writeTo } from "../../parts/handlers.ts";
import { AiUsagePart } from "../insights/ai-usage.tsx";
import { ChooseRange } from "../insights/choose-range.tsx";
import type { Sheet } from "../insights/csv.ts";
import { SheetButton } from "../insights/sheet-button.tsx";
import { useRange } from "../insights/use-range.ts";

export default function OwnAiUsage() {
  const range = useRange();
  const sheet = useSignal<Sheet | undefined>(undefined);
  const user_id = me.value?.id;
  if (user_id === undefined) return null;
  return (
    <>
      <div class="head">
        <h2>Your model calls</h2>
        <span class="push line">
          <ChooseRange range={range} />
          <SheetButton name="my-ai-usage" range={range} sheet={sheet} />
        </span>
      </div>
      <AiUsagePart key={range.query.start_time} range={range} onSheet={writeTo(sheet)} user_id={user_id} />
    </>
  );
}
