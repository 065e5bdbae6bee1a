/** A program in place of `xdg-open`, which writes what it is called with to a file. */
import { chmod, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { createTemporaryDir } from "../directories.ts";

export interface BrowserStub {
  /** A PATH on which it is found, and no sign of a person at this machine. */
  env: Record<string, string>;
  /** @returns the address that was opened; empty when none was. */
  readOpened: () => Promise<string>;
}

export async function createBrowserStub(): Promise<BrowserStub> {
  const dir = await createTemporaryDir();
  const record = join(dir, "opened");
  await writeFile(join(dir, "xdg-open"), `#!/bin/sh\nprintf '%s' "$*" > ${record}\n`);
  await chmod(join(dir, "xdg-open"), 0o755);
  return {
    env: {
      ...{ DISPLAY: "", WAYLAND_DISPLAY: "", SSH_CONNECTION: "", SSH_TTY: "" },
      PATH: `${dir}${delimiter}${process.env["PATH"]}`,
    },
    readOpened: () => readFile(record, "utf8").catch(() => ""),
  };
}
