// The diff of a file as a table of lines. Lines can be commented on if `note` is set.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { type DiffLine, toShownPieces } from "./diff-lines.ts";

const MAX_SHOWN_LINES = 300;
const SIGNS = { add: "+", del: "-", same: " ", hunk: "" } as const;

type DiffProps = {
  readonly label: string;
  readonly lines: readonly DiffLine[];
  /** Content below a line, such as a comment. */
  readonly note?: (line: DiffLine) => ComponentChildren;
  readonly onPick?: (line: DiffLine) => void;
};

export const Diff = ({ label, lines, note, onPick }: DiffProps) => {
  const shown = useSignal(MAX_SHOWN_LINES);
  const rest = lines.length - shown.value;
  return (
    <div class="diff" tabIndex={0} role="region" aria-label={label}>
      <table>
        <tbody>
          {lines.slice(0, shown.value).map((line, at) => (
            <Line key={at} line={line} note={note} onPick={onPick} />
          ))}
        </tbody>
      </table>
      {rest > 0 && (
        <button
          type="button"
          class="btn sm ghost"
          onClick={() => {
            shown.value += 10 * MAX_SHOWN_LINES;
          }}
        >
          Show {rest} more lines
        </button>
      )}
    </div>
  );
};

const Line = ({ line, note, onPick }: { line: DiffLine } & Pick<DiffProps, "note" | "onPick">) => {
  const { kind, before, after } = line;
  const below = note?.(line);
  const number = after ?? before;
  return (
    <>
      <tr class={kind === "same" ? undefined : kind}>
        <td>{before}</td>
        <td>
          {onPick && number !== undefined ? (
            <button
              type="button"
              class={after === undefined ? "pick blank" : "pick"}
              aria-label={`Comment on line ${number}`}
              onClick={() => onPick(line)}
            >
              {after ?? "+"}
            </button>
          ) : (
            after
          )}
        </td>
        <td>
          {SIGNS[kind]} <Text line={line} />
        </td>
      </tr>
      {below && (
        <tr>
          <td class="note" colSpan={3}>
            {below}
          </td>
        </tr>
      )}
    </>
  );
};

const Text = ({ line }: { line: DiffLine }) => {
  const [before, changed, after] = toShownPieces(line);
  if (changed === "") return <>{before}</>;
  return (
    <>
      {before}
      {line.kind === "add" ? <ins>{changed}</ins> : <del>{changed}</del>}
      {after}
    </>
  );
};
