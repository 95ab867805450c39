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
  readonly renderNote?: (line: DiffLine) => ComponentChildren;
  readonly onPick?: (line: DiffLine) => void;
};

export const Diff = ({ label, lines, renderNote, onPick }: DiffProps) => {
  const shownCount = useSignal(MAX_SHOWN_LINES);
  const hiddenCount = lines.length - shownCount.value;
  return (
    <div class="diff" tabIndex={0} role="region" aria-label={label}>
      <table>
        <tbody>
          {lines.slice(0, shownCount.value).map((line, index) => (
            <Line key={index} line={line} renderNote={renderNote} onPick={onPick} />
          ))}
        </tbody>
      </table>
      {hiddenCount > 0 && (
        <button
          type="button"
          class="btn sm ghost"
          onClick={() => {
            shownCount.value += 10 * MAX_SHOWN_LINES;
          }}
        >
          Show {hiddenCount} more lines
        </button>
      )}
    </div>
  );
};

const Line = ({ line, renderNote, onPick }: { line: DiffLine } & Pick<DiffProps, "renderNote" | "onPick">) => {
  const { kind, before, after } = line;
  const note = renderNote?.(line);
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
      {note && (
        <tr>
          <td class="note" colSpan={3}>
            {note}
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
