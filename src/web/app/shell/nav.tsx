// The navigation: a sidebar, a rail of icons on narrow screens, tabs at the bottom on phones.
import { useLocation } from "preact-iso/router";
import { branding } from "../data/branding.ts";
import { unreadCount } from "../data/inbox.ts";
import { chooseTheme, switchTheme } from "../data/looks.ts";
import { needs } from "../data/needs.ts";
import { me, signOut, viewer } from "../data/session.ts";
import type { IconName } from "../icons.ts";
import { openCommands } from "../parts/as-command.tsx";
import { Brand } from "../parts/brand.tsx";
import { Icon } from "../parts/icon.tsx";
import { Menu, type MenuItem } from "../parts/menu.tsx";
import { Bell, openInbox } from "./inbox.tsx";
import { isOffered, MORE_PLACES, type PageLink, PLACES, TABS } from "./page-list.ts";
import { openPalette } from "./palette.tsx";
import { theme } from "./theme.ts";
import { showError } from "./toasts.tsx";

const isCurrent = (href: string, path: string): boolean =>
  path === href || (href !== "/" && path.startsWith(`${href}/`));

/** The number of items that need attention, next to the link. */
const AttentionCount = ({ href }: { href: string }) => {
  const count = href === "/" ? needs.value.length : 0;
  if (count === 0) return null;
  return (
    <span class="count attn">
      {count}
      <span class="vh"> need you</span>
    </span>
  );
};

const NavLink = ({ link, path }: { link: PageLink; path: string }) => (
  <a href={link.href} aria-current={isCurrent(link.href, path) ? "page" : undefined} title={link.label}>
    <Icon name={link.icon} />
    <span class="label">{link.label}</span>
    <AttentionCount href={link.href} />
    <kbd aria-hidden="true">{link.keys.toUpperCase()}</kbd>
  </a>
);

const toInitials = (name: string): string =>
  name
    .split(/[\s-]+/)
    .slice(0, 2)
    .map((word) => word.charAt(0))
    .join("")
    .toUpperCase() || name.slice(0, 2).toUpperCase();

const listAccountItems = (): MenuItem[] => [
  { icon: "user", label: "Account", href: "/account" },
  { icon: "shield", label: "Security", href: "/account/security" },
  { icon: "key", label: "API tokens", href: "/account/tokens" },
  { icon: "file", label: "Documentation", href: "/docs" },
  { icon: "file", label: "API reference", href: "/swagger" },
  "line",
  { icon: "out", label: "Sign out", act: signOut },
];

const THEME_ICONS: Record<string, IconName> = { light: "sun", dark: "moon", system: "cols" };

export const Nav = () => {
  const { path } = useLocation();
  const user = me.value;
  const morePlaces = MORE_PLACES.filter((link) => isOffered(link, viewer.value));
  return (
    <nav class="nav" aria-label="Main">
      <a class="brand" href="/" title={branding.value.name}>
        <Brand />
        <span class="label clip">{branding.value.name}</span>
      </a>
      <button type="button" onClick={openPalette} aria-keyshortcuts="Control+K" title="Search">
        <Icon name="search" />
        <span class="label">Search</span>
        <kbd aria-hidden="true">Ctrl K</kbd>
      </button>
      {PLACES.map((link) => (
        <NavLink key={link.href} link={link} path={path} />
      ))}
      {morePlaces.length > 0 && <h2>Organization</h2>}
      {morePlaces.map((link) => (
        <NavLink key={link.href} link={link} path={path} />
      ))}
      <Bell />
      <button
        class="end"
        type="button"
        onClick={() => void switchTheme().catch(showError)}
        title={`Theme: ${theme.value}`}
      >
        <Icon name={THEME_ICONS[theme.value] ?? "moon"} />
        <span class="label">Theme: {theme.value}</span>
      </button>
      {user && (
        <Menu label="Account" items={listAccountItems} class="account">
          <span class="avatar" aria-hidden="true">
            {toInitials(user.name || user.username)}
          </span>
          <span class="label clip">{user.name || user.username}</span>
        </Menu>
      )}
    </nav>
  );
};

const listThemeItems = (): MenuItem[] => [
  { icon: "sun", label: "Light", act: () => chooseTheme("light") },
  { icon: "moon", label: "Dark", act: () => chooseTheme("dark") },
  { icon: "cols", label: "System", act: () => chooseTheme("system") },
];

export const TabBar = () => {
  const { path } = useLocation();
  const listOtherItems = (): MenuItem[] => [
    ...[...PLACES, ...MORE_PLACES]
      .filter(({ href }) => !TABS.some((tab) => tab.href === href))
      .filter((link) => isOffered(link, viewer.value))
      .map(({ href, label, icon }): MenuItem => ({ href, label, icon })),
    { icon: "search", label: "Search", act: openPalette },
    { icon: "terminal", label: "Show as command", act: openCommands },
    {
      icon: "bell",
      label: unreadCount.value > 0 ? `Notifications (${unreadCount.value})` : "Notifications",
      act: openInbox,
    },
    ...listThemeItems(),
    "line",
    ...listAccountItems(),
  ];
  return (
    <nav class="tabbar" aria-label="Sections">
      {TABS.map(({ href, label, icon }) => (
        <a key={href} href={href} aria-current={isCurrent(href, path) ? "page" : undefined}>
          <Icon name={icon} />
          {label}
          <AttentionCount href={href} />
        </a>
      ))}
      <Menu label="More" items={listOtherItems} class="tab">
        <Icon name="dots" />
        More
      </Menu>
    </nav>
  );
};
