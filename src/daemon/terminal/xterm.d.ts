// The parts of xterm's packages that the emulator uses. The packages' own declarations would add DOM types to the whole program.

declare module "@xterm/headless/lib-headless/xterm-headless.js" {
  type Params = (number | number[])[];
  type Final = { readonly prefix?: string; readonly intermediates?: string; readonly final: string };
  type Cell = { isBgDefault(): boolean };
  type Line = { translateToString(trimRight?: boolean): string; getCell(at: number): Cell | undefined };
  export class Terminal {
    constructor(options: {
      cols: number;
      rows: number;
      scrollback?: number;
      allowProposedApi: true;
      logLevel?: "off";
    });
    readonly rows: number;
    readonly options: { scrollback: number };
    readonly buffer: {
      readonly active: {
        readonly type: "normal" | "alternate";
        readonly cursorX: number;
        readonly cursorY: number;
        readonly baseY: number;
        getLine(at: number): Line | undefined;
      };
    };
    readonly modes: { readonly originMode: boolean; readonly mouseTrackingMode: string };
    readonly parser: {
      registerCsiHandler(id: Final, run: (params: Params) => boolean): void;
      registerEscHandler(id: Final, run: () => boolean): void;
    };
    loadAddon(addon: object): void;
    onTitleChange(run: (title: string) => void): void;
    write(data: Uint8Array | string, callback?: () => void): void;
    resize(columns: number, rows: number): void;
    reset(): void;
    dispose(): void;
  }
}

declare module "@xterm/addon-serialize/lib/addon-serialize.js" {
  export class SerializeAddon {
    serialize(options?: { scrollback?: number }): string;
  }
}
