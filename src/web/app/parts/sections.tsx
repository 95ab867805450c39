// Shows sections with a side navigation (Sections) or as tabs (Tabs). One section is open at a time; each has its own URL.
import type { ComponentType, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Empty } from "./empty.tsx";

/** Scrolls the current tab to the center of the row, when the page opens and when `open` changes. */
const useScrollToCurrent = <E extends HTMLElement>(open: string | undefined): RefObject<E | null> => {
  const ref = useRef<E>(null);
  useEffect(() => {
    const [row, current] = [ref.current, ref.current?.querySelector<HTMLElement>("[aria-current]")];
    if (row && current)
      row.scrollLeft = current.offsetLeft - row.offsetLeft - (row.clientWidth - current.clientWidth) / 2;
  }, [open]);
  return ref;
};

type SectionLink = { readonly name: string; readonly label: string; readonly href: string };

/** Links to the sections, with the open one marked as current. */
const SectionLinks = ({ links, open }: { readonly links: readonly SectionLink[]; readonly open: string | undefined }) =>
  links.map(({ name, label, href }) => (
    <a key={name} href={href} aria-current={name === open ? "page" : undefined}>
      {label}
    </a>
  ));

export type Section = { readonly name: string; readonly label: string; readonly page: ComponentType };

type SectionsProps = {
  readonly label: string;
  /** The address before the section's name: `/account`. */
  readonly path: string;
  readonly sections: readonly Section[];
  readonly open: Section | undefined;
};

export const Sections = ({ label, path, sections, open }: SectionsProps) => {
  const Page = open?.page;
  const navigation = useScrollToCurrent<HTMLElement>(open?.name);
  return (
    <div class="admin">
      <nav class="subnav" aria-label={label} ref={navigation}>
        <SectionLinks links={sections.map((one) => ({ ...one, href: `${path}/${one.name}` }))} open={open?.name} />
      </nav>
      <div class="page narrow">
        {Page ? <Page /> : <Empty icon="search" title="Section not found" text="The URL doesn't match any section." />}
      </div>
    </div>
  );
};

type TabsProps = {
  /** Accessible name of the list, such as "Workspace sections". */
  readonly label: string;
  readonly tabs: readonly SectionLink[];
  /** The name of the open section. */
  readonly open: string | undefined;
};

export const Tabs = ({ label, tabs, open }: TabsProps) => (
  <div class="tabs" role="navigation" aria-label={label} ref={useScrollToCurrent<HTMLDivElement>(open)}>
    <SectionLinks links={tabs} open={open} />
  </div>
);
