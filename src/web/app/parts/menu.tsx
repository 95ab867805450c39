// Menus based on the browser's popovers. On phones, the menu opens as a bottom sheet.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { IconName } from "../icons.ts";
import { showError } from "../shell/toasts.tsx";
import { toClass } from "./button.tsx";
import { Icon } from "./icon.tsx";

export type MenuItem =
  | {
      readonly icon?: IconName;
      readonly label: string;
      readonly note?: string;
      /** Destructive: shown in red, last and below a line. */
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
  /** Accessible name of the button and the menu, such as "More for payments-api". */
  readonly label: string;
  readonly icon?: IconName;
  readonly items: () => readonly MenuItem[];
  /** Loads further items, which appear below the others, but above destructive ones. */
  readonly loadMore?: () => Promise<readonly MenuItem[]>;
  readonly small?: boolean;
  readonly class?: string;
  /** Replaces the icon. */
  readonly children?: ComponentChildren;
  readonly look?: "ghost" | "primary";
};

const Item = ({ item, close }: { item: Exclude<MenuItem, "line">; close: () => void }) => {
  const content = (
    <>
      {item.icon && <Icon name={item.icon} />}
      <span class="clip">{item.label}</span>
      {item.note && <span class="dim small">{item.note}</span>}
    </>
  );
  if ("href" in item) {
    return (
      <a href={item.href} onClick={close} {...(item.newTab ? { target: "_blank", rel: "noreferrer" } : {})}>
        {content}
      </a>
    );
  }
  const act = (): void => {
    close();
    const result = item.act();
    if (result instanceof Promise) void result.catch(showError);
  };
  return (
    <button type="button" class={item.isDanger ? "danger" : undefined} onClick={act}>
      {content}
    </button>
  );
};

/** Up and Down move the focus. The browser closes the menu on Escape. */
const moveFocus = (event: KeyboardEvent): void => {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0) return;
  event.preventDefault();
  const stops = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("a, button")];
  const index = stops.indexOf(document.activeElement as HTMLElement);
  stops.at((index + step + (index < 0 && step < 0 ? 1 : 0)) % stops.length)?.focus();
};

export const Menu = (props: MenuProps) => {
  const { label, icon = "dots", items, loadMore, small, children, look = "ghost" } = props;
  const style = { look, small, class: props.class };
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  // Every row of a list has a menu, so its content is created only when it opens.
  const isOpen = useSignal(false);
  const close = (): void => menu.current?.hidePopover();
  const handleBeforeToggle = ({ newState }: { newState: string }): void => {
    if (newState === "open") isOpen.value = true;
  };
  const positionMenu = (): void => {
    const [box, buttonBox] = [menu.current, button.current?.getBoundingClientRect()];
    if (!box || !buttonBox || matchMedia("(width < 40rem)").matches) return;
    // Positioned through the object model: the policy forbids style attributes.
    const { width, height } = box.getBoundingClientRect();
    const fitsBelow = buttonBox.bottom + 4 + height <= innerHeight;
    box.style.insetBlockStart = `${fitsBelow ? buttonBox.bottom + 4 : Math.max(4, buttonBox.top - height - 4)}px`;
    box.style.insetInlineStart = `${Math.max(4, Math.min(buttonBox.right - width, innerWidth - width - 4))}px`;
  };
  const handleToggle = ({ newState }: { newState: string }): void => {
    button.current?.setAttribute("aria-expanded", String(newState === "open"));
    if (newState !== "open") {
      // The content is removed only after the menu has closed, because the browser returns the focus only from elements that still exist.
      isOpen.value = false;
      return;
    }
    positionMenu();
    // A bottom sheet does not take the focus, and a focus inside the menu is kept.
    if (matchMedia("(width < 40rem)").matches || menu.current?.contains(document.activeElement)) return;
    menu.current?.querySelector<HTMLElement>("a, button")?.focus();
  };
  return (
    <>
      <button
        ref={button}
        class={toClass(style, children === undefined)}
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
        onBeforeToggle={handleBeforeToggle}
        onToggle={handleToggle}
        onKeyDown={moveFocus}
      >
        {isOpen.value && <MenuItems items={items} loadMore={loadMore} close={close} onLoaded={positionMenu} />}
      </div>
    </>
  );
};

type MenuItemsProps = Pick<MenuProps, "items" | "loadMore"> & {
  readonly close: () => void;
  /** Called when the further items are loaded. */
  readonly onLoaded: () => void;
};

const isDangerous = (item: MenuItem): boolean => item !== "line" && "isDanger" in item && item.isDanger === true;

/** Moves destructive items to the end, below a line, and removes lines that separate nothing. */
const orderItems = (items: readonly MenuItem[]): readonly MenuItem[] =>
  [...items.filter((one) => !isDangerous(one)), "line" as const, ...items.filter(isDangerous)].filter(
    (item, index, items) =>
      item !== "line" ||
      (index > 0 && items[index - 1] !== "line" && items.slice(index).some((later) => later !== "line")),
  );

const MenuItems = ({ items, loadMore, close, onLoaded }: MenuItemsProps) => {
  const furtherItems = useSignal<readonly MenuItem[]>([]);
  useEffect(() => {
    loadMore?.().then((loaded) => {
      furtherItems.value = loaded.length > 0 ? ["line", ...loaded] : [];
    }, showError);
  }, []);
  useEffect(onLoaded, [furtherItems.value]);
  return (
    <>
      {orderItems([...items(), ...furtherItems.value]).map((item, index) =>
        item === "line" ? (
          <hr key={`line ${index}`} />
        ) : (
          <Item key={`${index} ${item.label}`} item={item} close={close} />
        ),
      )}
    </>
  );
};
