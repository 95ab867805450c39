// A row of figures, each with its change.
export type Stat = { readonly label: string; readonly value: string; readonly note?: string };

export const Stats = ({ stats }: { stats: readonly Stat[] }) => (
  <dl class="stats">
    {stats.map(({ label, value, note }) => (
      <div key={label}>
        <dt>{label}</dt>
        <dd>
          {value} {note && <small>{note}</small>}
        </dd>
      </div>
    ))}
  </dl>
);
