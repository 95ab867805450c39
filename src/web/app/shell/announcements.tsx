// The administrators' announcements, shown above each page until dismissed in this browser.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Banner } from "#schema/deployment/appearance.ts";
import { banners } from "../data/face.ts";
import { IconButton } from "../parts/button.tsx";
import { inkOn } from "../parts/ink.ts";

const PUT_AWAY = "banners-put-away";

/** Identified by text, so that a repeated announcement appears again. */
const putAway = signal<readonly string[]>(localStorage.getItem(PUT_AWAY)?.split("\n").map(decodeURIComponent) ?? []);

const dismiss = (message: string): void => {
  // Forgets dismissals of announcements that have been removed.
  const said = new Set(banners.value.map((one) => one.message));
  putAway.value = [...putAway.value.filter((one) => said.has(one)), message];
  localStorage.setItem(PUT_AWAY, putAway.value.map(encodeURIComponent).join("\n"));
};

const Announcement = ({ banner: { message, background_color } }: { banner: Banner }) => {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const style = box.current?.style;
    if (!style) return;
    style.backgroundColor = background_color;
    style.color = background_color && inkOn(background_color);
  }, [background_color]);
  return (
    <div class="banner announcement" ref={box} role="note" aria-label="Announcement">
      <span>{message}</span>
      <IconButton class="push" icon="x" label="Dismiss announcement" onPress={() => dismiss(message)} />
    </div>
  );
};

export const Announcements = () => (
  <>
    {banners.value
      .filter(({ message }) => !putAway.value.includes(message))
      .map((banner) => (
        <Announcement key={banner.message} banner={banner} />
      ))}
  </>
);
