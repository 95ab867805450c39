// What the app uses of noVNC, which has no types of its own.
declare module "@novnc/novnc" {
  export default class RFB extends EventTarget {
    constructor(target: HTMLElement, url: string | WebSocket, options?: { shared?: boolean });
    scaleViewport: boolean;
    viewOnly: boolean;
    background: string;
    disconnect(): void;
    focus(options?: FocusOptions): void;
    clipboardPasteFrom(text: string): void;
    sendCtrlAltDel(): void;
  }
}
