// The built-in ways to connect to a workspace, which every template has, in the order in which usage reports list them (facts/platform
// 6.2).

export const BUILTIN_APPS = [
  { slug: "vscode", display_name: "Visual Studio Code", icon: "/icon/code.svg" },
  { slug: "jetbrains", display_name: "JetBrains", icon: "/icon/intellij.svg" },
  { slug: "reconnecting-pty", display_name: "Web Terminal", icon: "/icon/terminal.svg" },
  { slug: "ssh", display_name: "SSH", icon: "/icon/terminal.svg" },
  { slug: "sftp", display_name: "SFTP", icon: "/icon/terminal.svg" },
] as const;
