// A button that downloads the report as a CSV file.
import type { Signal } from "@preact/signals";
import { Button } from "../../parts/button.tsx";
import { type Sheet, toCsv } from "./csv.ts";
import type { DateRange } from "./range.ts";

/** Downloads the text as a file of this name. */
const download = (name: string, text: string, type = "text/plain"): void => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
};

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
