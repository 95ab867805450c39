// The usage and build statistics of one template.

import { Builds } from "../insights/builds.tsx";
import { ChooseRange } from "../insights/choose-range.tsx";
import { UsagePart } from "../insights/use.tsx";
import { useRange } from "../insights/use-range.ts";

const ignore = (): void => {};

export default function TemplateInsights({ id }: { id: string }) {
  const range = useRange();
  const props = { range, template: id, onSheet: ignore };
  return (
    <>
      <div class="line wrap">
        <ChooseRange range={range} />
      </div>
      <UsagePart key={`use ${range.query.start_time}`} {...props} />
      <Builds key={`builds ${range.query.start_time}`} {...props} />
    </>
  );
}
