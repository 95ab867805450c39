// A button that downloads the report as a CSV file.
import type { Signal } from "@preact/signals";
import { Button } from "../../parts/button.tsx";
import { download } from "../../parts/download.ts";
import { type Sheet, toCsv } from "./csv.ts";
import type { DateRange } from "./range.ts";

type SheetButtonProps = {
  readonly name: string;
  readonly range: DateRange;
  /** Undefined while there is nothing to download. */
  readonly sheet: Signal<Sheet | undefined>;
};

export const SheetButton = ({ name, range, sheet }: SheetButtonProps) => (
  <Button
    class="desk"
    look="ghost"
    icon="file"
    label="Download as CSV"
    disabled={sheet.value === undefined}
    onPress={() => {
      const file = `slipway-${name}-${range.first}-${range.last}.csv`;
      if (sheet.value) download(file, toCsv(sheet.value), "text/csv");
    }}
  >
    CSV
  </Button>
);
