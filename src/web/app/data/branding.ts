// The deployment's branding: the name and logo that the server includes in the page, and the administrators' announcements.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Appearance, Banner } from "#schema/deployment/appearance.ts";
import { call } from "./api.ts";

const readMeta = (name: string): string =>
  document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";

/** `logo` is an image URL, or empty for the default logo. */
export const branding = signal({ name: readMeta("application-name"), logo: readMeta("application-logo") });

const STORAGE_KEY = "banners";
/** Minimum interval between reloads when the user switches between windows. */
const MIN_RELOAD_INTERVAL_MS = 60_000;

const readStoredBanners = (): readonly Banner[] => {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "[]") as Banner[];
  } catch {
    return [];
  }
};

/** Announcements as last loaded. Shown immediately on the next visit so that the layout does not shift. */
export const banners = signal<readonly Banner[]>(readStoredBanners());

export const applyAppearance = ({
  application_name,
  logo_url,
  service_banner,
  announcement_banners,
}: Appearance): void => {
  branding.value = { name: application_name, logo: logo_url };
  banners.value = [service_banner, ...announcement_banners].filter(({ enabled, message }) => enabled && message !== "");
  localStorage.setItem(STORAGE_KEY, JSON.stringify(banners.value));
};

let loadedAt = 0;

const loadAppearance = async (): Promise<void> => {
  loadedAt = Date.now();
  applyAppearance(await call("GET /appearance"));
};

/** Loads the announcements, and reloads them when the user returns to the window. */
export const followAppearance = (): (() => void) => {
  const refreshIfStale = (): void => {
    if (!document.hidden && Date.now() - loadedAt > MIN_RELOAD_INTERVAL_MS)
      void loadAppearance().catch(() => undefined);
  };
  refreshIfStale();
  document.addEventListener("visibilitychange", refreshIfStale);
  return () => document.removeEventListener("visibilitychange", refreshIfStale);
};

/** Sets the document title while a page is shown. */
export const useTitle = (title: string): void => {
  const { name } = branding.value;
  useEffect(() => {
    document.title = `${title} · ${name}`;
  }, [title, name]);
};
