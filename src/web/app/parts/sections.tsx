// Sections as a page of their own or as tabs. A page of sections: their names at the side, one of them open, each at an address of its own.
import type { ComponentType, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Empty } from "./empty.tsx";

/** For the row: what is current in it is scrolled to its middle when the page opens and when `open` is another. */
const useInSight = <E extends HTMLElement>(open: string | undefined): RefObject<E | null> => {
  const ref = useRef<E>(null);
  useEffect(() => {
    const [row, here] = [ref.current, ref.current?.querySelector<HTMLElement>("[aria-current]")];
    if (row && here) row.scrollLeft = here.offsetLeft - row.offsetLeft - (row.clientWidth - here.clientWidth) / 2;
  }, [open]);
  return ref;
};

type Name = { readonly name: string; readonly label: string; readonly href: string };

/** Links to the sections; the open one is marked as current. */
const Names = ({ names, open }: { readonly names: readonly Name[]; readonly open: string | undefined }) =>
  names.map(({ name, label, href }) => (
    <a key={name} href={href} aria-current={name === open ? "page" : undefined}>
      {label}
    </a>
  ));

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
  const names = useInSight<HTMLElement>(open?.name);
  return (
    <div class="admin">
      <nav class="subnav" aria-label={label} ref={names}>
        <Names names={sections.map((one) => ({ ...one, href: `${path}/${one.name}` }))} open={open?.name} />
      </nav>
      <div class="page narrow">
        {Page ? <Page /> : <Empty icon="search" title="Section not found" text="The URL doesn't match any section." />}
      </div>
    </div>
  );
};

type TabsProps = {
  /** What the sections are of: Workspace sections. */
  readonly label: string;
  readonly tabs: readonly Name[];
  /** The name of the one that is open. */
  readonly open: string | undefined;
};

export const Tabs = ({ label, tabs, open }: TabsProps) => (
  <div class="tabs" role="navigation" aria-label={label} ref={useInSight<HTMLDivElement>(open)}>
    <Names names={tabs} open={open} />
  </div>
);
