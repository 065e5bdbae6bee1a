/** Where the output of a command can't be written. */
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { AGENT_COMMAND, runAgent, runToEnd } from "../../../harness/tunnel/agent.ts";

/** @param redirection of the standard output, in the language of the shell. */
const runRedirected = (args: string[], redirection: string) =>
  runToEnd(args, { command: ["sh", "-c", `"$@" ${redirection}`, "sh", ...AGENT_COMMAND] });

test.runIf(existsSync("/dev/full")).each([[["version"]], [["version", "--json"]], [["help"]]])(
  "on a full disk, %j fails and says why",
  async (args) => {
    expect(await runRedirected(args, "> /dev/full")).toMatchObject({
      code: 1,
      stderr: "underpass: the output can't be written: no space left on device (ENOSPC)\n",
    });
  },
);

test("the reader of a pipe that ends first is no failure", async () => {
  await using agent = await runAgent(["help"]);
  agent.child.stdout!.destroy();
  expect(await agent.exit).toBe(0);
  expect(agent.stderr).toBe("");
});
