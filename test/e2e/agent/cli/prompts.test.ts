/** Commands that ask something, and are interrupted at the question. */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { canOpenTerminals, typeCommand } from "../../../harness/terminal.ts";
import { AGENT_COMMAND } from "../../../harness/tunnel/agent.ts";
import { startTunnelOwner, type TunnelOwner } from "../../../harness/tunnel/owned-tunnel.ts";

const CTRL_C = "\u0003";
const CTRL_D = "\u0004";
/** As a shell reports a command that SIGINT has ended. */
const INTERRUPTED = 130;

describe.runIf(canOpenTerminals())("at the question", () => {
  let world: TunnelOwner;
  let home: string;
  beforeAll(async () => {
    [world, home] = await Promise.all([startTunnelOwner(), createTemporaryDir()]);
  });
  afterAll(async () => {
    await world.stop();
    await rm(home, { recursive: true });
  });

  /** @returns the exit code, and what was printed after the question. */
  async function press(key: string, args: string, question: RegExp): Promise<[unknown, string]> {
    const command = `${AGENT_COMMAND.join(" ")} ${args} --server ${world.api.server.url}`;
    const env = { HOME: home, UNDERPASS_ACCESS_TOKEN: world.owner.accessToken };
    await using typed = typeCommand(command, { cwd: home, env, atTerminal: true });
    await typed.waitForOutput(question);
    typed.write(key);
    const code = await typed.exit;
    const [, after = ""] = typed.output.split(question);
    return [code, after.trimEnd()];
  }

  test.each([
    [CTRL_C, INTERRUPTED, ""],
    [CTRL_D, 1, "\nunderpass: no email address was entered, so no account was created"],
  ])("for an email address, %j ends the login with %i", async (key, code, text) => {
    const question = /Your email address .*: /;
    expect(await press(key, "login --setup CODE", question)).toEqual([code, text]);
  });

  test.each([
    [CTRL_C, INTERRUPTED, ""],
    [CTRL_D, 1, "\nNothing was changed."],
  ])("for a confirmation, %j deletes nothing and ends with %i", async (key, code, text) => {
    const subdomain = `asked-${code}`;
    await world.owner.post("/tunnels", { subdomain, localPort: 3000 });
    const asked = press(key, `tunnels delete ${subdomain}`, /Delete .*\? \[y\/N\] /);
    expect(await asked).toEqual([code, text]);
    const { body } = await world.owner.get<{ subdomain: string }[]>("/tunnels");
    expect(body.map((tunnel) => tunnel.subdomain)).toContain(subdomain);
  });
});
