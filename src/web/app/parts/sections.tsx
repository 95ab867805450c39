// A page of sections: their names at the side, one of them open, each at an address of its own.
import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Empty } from "./empty.tsx";

export type Section = { readonly name: string; readonly label: string; readonly page: ComponentType };

type SectionsProps = {
  readonly label: string;
  /** The address before the name of a section: `/account`. */
  readonly path: string;
  readonly sections: readonly Section[];
  readonly open: Section | undefined;
};

export const Sections = ({ label, path, sections, open }: SectionsProps) => {
  const Page = open?.page;
  const names = useRef<HTMLElement>(null);
  // On phones they lie in a row that is wider than the page.
  useEffect(() => {
    const [row, here] = [names.current, names.current?.querySelector<HTMLElement>("[aria-current]")];
    if (row && here) row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.clientWidth) / 2;
  }, [open?.name]);
  return (
    <div class="admin">
      <nav class="subnav" aria-label={label} ref={names}>
        {sections.map(({ name, label }) => (
          <a key={name} href={`${path}/${name}`} aria-current={name === open?.name ? "page" : undefined}>
            {label}
          </a>
        ))}
      </nav>
      <div class="page narrow">
        {Page ? <Page /> : <Empty icon="search" title="No such section" text="The address names none of these." />}
      </div>
    </div>
  );
};
