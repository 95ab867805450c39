// A VNC client on the chat's desktop stream. Loaded when the desktop is first opened.
import RFB from "@novnc/novnc";

type Listeners = {
  readonly onOpen: () => void;
  /** `clean`: either side closed the connection normally. */
  readonly onClose: (isClean: boolean) => void;
  /** Called with text that was cut or copied on the desktop. */
  readonly onCopy: (text: string) => void;
};

export type DesktopSession = {
  paste(text: string): void;
  focus(): void;
  end(): void;
};

export const openDesktop = (
  box: HTMLElement,
  address: string,
  { viewOnly, ...listeners }: Listeners & { viewOnly: boolean },
): DesktopSession => {
  const url = new URL(address, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const viewer = new RFB(box, url.href, { shared: true });
  viewer.scaleViewport = true;
  viewer.viewOnly = viewOnly;
  viewer.background = "transparent";
  viewer.addEventListener("connect", listeners.onOpen);
  const handleDisconnect = (event: Event): void =>
    listeners.onClose((event as CustomEvent<{ clean: boolean }>).detail.clean);
  viewer.addEventListener("disconnect", handleDisconnect);
  viewer.addEventListener("clipboard", (event) =>
    listeners.onCopy((event as CustomEvent<{ text: string }>).detail.text),
  );
  return {
    paste: (text) => viewer.clipboardPasteFrom(text),
    focus: () => viewer.focus(),
    end() {
      viewer.removeEventListener("disconnect", handleDisconnect);
      viewer.disconnect();
    },
  };
};
