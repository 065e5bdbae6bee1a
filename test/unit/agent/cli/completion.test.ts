import { expect, test } from "vitest";
import { findCandidates } from "../../../../agent/cli/completion.ts";
import type { Command } from "../../../../agent/commands/command.ts";
import { COMMANDS } from "../../../../agent/commands/table/table.ts";

function listCommands(commands: readonly Command[]): Command[] {
  return commands.flatMap((command) => [command, ...listCommands(command.subcommands ?? [])]);
}

/** @param line what stands after `underpass`; the last word is being typed. */
async function complete(line: string): Promise<string[]> {
  const candidates = await findCandidates(line.split(" "));
  return candidates.map(([word]) => word);
}

test.each([
  ["ht", ["http"]],
  ["help vp", ["vpn"]],
  ["help vpn ", ["add", "devices", "remove"]],
  ["http 3000 --sub", ["--subdomain"]],
  ["http --log-level ", ["error", "warn", "info", "debug"]],
  ["http --log-level de", ["debug"]],
  ["http --log-level=de", ["--log-level=debug"]],
  ["http --token-file ", [":file"]],
  ["http --token-file=to", [":file"]],
  ["http --policy-file ", ["off", ":file"]],
  ["http --policy-file=o", ["--policy-file=off", ":file"]],
  ["http --basic-auth ", ["off"]],
  ["vpn --dir ", [":directory"]],
  ["vpn ", []],
  ["vpn office ", ["add", "devices", "remove"]],
  ["vpn --json office a", ["add"]],
  ["vpn office add --n", ["--no-qr"]],
  ["completion ", ["bash", "zsh", "fish"]],
  ["completion bash ", []],
  ["http ./pub", [":file"]],
  ["http 3000 ", []],
  ["unknown ", []],
  ["http --subdomain ", []],
])("%j is completed with %j", async (line, expected) => {
  expect(await complete(line)).toEqual(expected);
});

test("an option that is given is offered again only if it may be repeated", async () => {
  const offered = await complete("tcp --json --allow 203.0.113.0/24 --");
  expect(offered).toContain("--allow");
  expect(offered).not.toContain("--json");
});

test("the value of each option that is a file or directory is completed", () => {
  const missing = listCommands(COMMANDS).flatMap(({ name, options }) =>
    Object.entries(options)
      .filter(
        ([, { placeholder = "", complete: completed }]) =>
          /^(FILE|DIR)$/.test(placeholder) && !completed,
      )
      .map(([option]) => `${name} --${option}`),
  );
  expect(missing).toEqual([]);
});
