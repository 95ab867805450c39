// The usage and build statistics of one template.

import { Builds } from "../insights/builds.tsx";
import { ChooseRange } from "../insights/choose-range.tsx";
import { Use } from "../insights/use.tsx";
import { useRange } from "../insights/use-range.ts";

const ignore = (): void => {};

export default function TemplateInsights({ id }: { id: string }) {
  const range = useRange();
  const shared = { range, template: id, sheet: ignore };
  return (
    <>
      <div class="line wrap">
        <ChooseRange range={range} />
      </div>
      <Use key={`use ${range.query.start_time}`} {...shared} />
      <Builds key={`builds ${range.query.start_time}`} {...shared} />
    </>
  );
}
