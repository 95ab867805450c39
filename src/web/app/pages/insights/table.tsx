// A table of a report: a name, then figures. The CSV file has the same content.
import type { ComponentChildren } from "preact";

type TableProps = {
  readonly title: string;
  /** The first heading is for the name, the others are for figures. */
  readonly head: readonly string[];
  readonly rows: readonly { readonly key: string; readonly cells: readonly ComponentChildren[] }[];
  /** Shown if there are no rows. */
  readonly empty: string;
};

export const Table = ({ title, head, rows, empty }: TableProps) => (
  <section class="panel" aria-label={title}>
    <header>
      <h2>{title}</h2>
    </header>
    {rows.length === 0 ? (
      <p class="pad dim">{empty}</p>
    ) : (
      <div class="body scroll" tabIndex={0} role="region" aria-label={`Table: ${title}`}>
        <table class="table">
          <thead>
            <tr>
              {head.map((one, column) => (
                <th key={one} class={column === 0 ? undefined : "r"}>
                  {one}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ key, cells }) => (
              <tr key={key}>
                {cells.map((cell, column) => (
                  <td key={head[column]} class={column === 0 ? undefined : "r num"}>
                    {cell}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    )}
  </section>
);
