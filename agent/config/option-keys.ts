/** The names of command-line options in underpass.yml. */

/** Names that differ from those of the command line: they read better for a value that is written down. */
const KEYS: Partial<Record<string, string>> = { "policy-file": "policy", header: "headers" };

/** Where a tunnel's options are set. Messages name options as they are written there. */
export type OptionSource = "command_line" | "file";

/** `--host-header` is `host_header` in the file. */
export function toKey(option: string): string {
  return KEYS[option] ?? option.replaceAll("-", "_");
}

/** A text about options of a tunnel, for the tunnels of a file: `--basic-auth=off` becomes `basic_auth: off`. */
export function nameKeys(text: string): string {
  return text.replace(
    /--([a-z][a-z-]*)(?:=(\w+))?/g,
    (_, option: string, value: string | undefined) =>
      `\`${toKey(option)}${value === undefined ? "" : `: ${value}`}\` in underpass.yml`,
  );
}
