// Menus on the browser's own popovers. On phones the same menu comes as a sheet from below.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import type { IconName } from "../icons.ts";
import { failed } from "../shell/toasts.tsx";
import { classOf } from "./button.tsx";
import { Icon } from "./icon.tsx";

export type MenuItem =
  | {
      readonly icon?: IconName;
      readonly label: string;
      readonly note?: string;
      readonly isDanger?: boolean;
      readonly act: () => unknown;
    }
  | {
      readonly icon?: IconName;
      readonly label: string;
      readonly note?: string;
      readonly href: string;
      readonly newTab?: boolean;
    }
  | "line";

type MenuProps = {
  /** What the button and the menu are called, such as "More for payments-api". */
  readonly label: string;
  readonly icon?: IconName;
  readonly items: () => readonly MenuItem[];
  readonly small?: boolean;
  readonly class?: string;
  /** In place of the icon. */
  readonly children?: ComponentChildren;
  readonly look?: "ghost" | "primary";
};

const Item = ({ item, close }: { item: Exclude<MenuItem, "line">; close: () => void }) => {
  const inside = (
    <>
      {item.icon && <Icon name={item.icon} />}
      <span class="clip">{item.label}</span>
      {item.note && <span class="dim small">{item.note}</span>}
    </>
  );
  if ("href" in item) {
    return (
      <a href={item.href} onClick={close} {...(item.newTab ? { target: "_blank", rel: "noreferrer" } : {})}>
        {inside}
      </a>
    );
  }
  const act = (): void => {
    close();
    const result = item.act();
    if (result instanceof Promise) void result.catch(failed);
  };
  return (
    <button type="button" class={item.isDanger ? "danger" : undefined} onClick={act}>
      {inside}
    </button>
  );
};

/** Up and down move; Escape closes, which the browser does. */
const move = (event: KeyboardEvent): void => {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const stops = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("a, button")];
  const at = stops.indexOf(document.activeElement as HTMLElement);
  stops.at((at + step + (at < 0 && step < 0 ? 1 : 0)) % stops.length)?.focus();
};

export const Menu = ({ label, icon = "dots", items, small, class: more, children, look = "ghost" }: MenuProps) => {
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  // A list has a menu in each row: what is in one is made when it opens.
  const isOpen = useSignal(false);
  const close = (): void => menu.current?.hidePopover();
  const before = ({ newState }: { newState: string }): void => {
    isOpen.value = newState === "open";
  };
  const place = (event: { newState: string }): void => {
    const [box, at] = [menu.current, button.current?.getBoundingClientRect()];
    if (!box || !at) return;
    button.current?.setAttribute("aria-expanded", String(event.newState === "open"));
    if (event.newState !== "open" || matchMedia("(width < 40rem)").matches) return;
    // By its own numbers: a style attribute would be forbidden, properties of the object model are not.
    const { width, height } = box.getBoundingClientRect();
    const below = at.bottom + 4 + height <= innerHeight;
    box.style.insetBlockStart = `${below ? at.bottom + 4 : Math.max(4, at.top - height - 4)}px`;
    box.style.insetInlineStart = `${Math.max(4, Math.min(at.right - width, innerWidth - width - 4))}px`;
    box.querySelector<HTMLElement>("a, button")?.focus();
  };
  return (
    <>
      <button
        ref={button}
        class={children ? classOf({ look, small, class: more }) : classOf({ look, small, class: more }, true)}
        type="button"
        aria-label={children ? undefined : label}
        aria-expanded="false"
        popovertarget={id}
      >
        {children ?? <Icon name={icon} />}
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        class="menu pop"
        role="group"
        aria-label={label}
        onBeforeToggle={before}
        onToggle={place}
        onKeyDown={move}
      >
        {isOpen.value && <MenuItems items={items} close={close} />}
      </div>
    </>
  );
};

const MenuItems = ({ items, close }: { items: () => readonly MenuItem[]; close: () => void }) => (
  <>
    {items().map((item, at) =>
      item === "line" ? <hr key={`line ${at}`} /> : <Item key={item.label} item={item} close={close} />,
    )}
  </>
);
