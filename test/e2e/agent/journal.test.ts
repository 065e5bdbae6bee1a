/** The agent's lines when its output is a socket, as under systemd. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fstatSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryDir } from "../../harness/directories.ts";
import { NODE_ENVIRONMENT } from "../../harness/node-environment.ts";
import { AGENT_COMMAND } from "../../harness/tunnel/agent.ts";

/** Nothing listens there, so the agent prints that it tries again. */
const ARGUMENTS = ["http", "3000", "--server", "http://127.0.0.1:1", "--inspect", "off"];

/** @param getJournalStream of the output's device and inode. @returns the first line that the agent prints. */
async function readFirstLine(getJournalStream: (dev: bigint, ino: bigint) => string) {
  const home = await createTemporaryDir();
  const journal = createServer().listen(join(home, "journal.sock"));
  await once(journal, "listening");
  const accepted = once(journal, "connection");
  const output = connect(join(home, "journal.sock"));
  const [reader] = (await accepted) as [Socket];
  const { _handle: handle } = output as unknown as { _handle: { fd: number } };
  const { dev, ino } = fstatSync(handle.fd, { bigint: true });
  const [program = "", ...rest] = AGENT_COMMAND;
  const agent = spawn(program, [...rest, ...ARGUMENTS], {
    cwd: home,
    env: {
      ...NODE_ENVIRONMENT,
      HOME: home,
      UNDERPASS_TOKEN: "dG9rZW4=",
      JOURNAL_STREAM: getJournalStream(dev, ino),
    },
    stdio: ["ignore", output, "inherit"],
  });
  const exit = once(agent, "close");
  let text = "";
  for await (const chunk of reader.setEncoding("utf8")) {
    text += String(chunk);
    if (text.includes("\n")) break;
  }
  agent.kill("SIGKILL");
  await exit;
  output.destroy();
  journal.close();
  await rm(home, { recursive: true, force: true });
  return text.split("\n")[0];
}

test("they have no time of their own in the journal, which adds it", async () => {
  expect(await readFirstLine((dev, ino) => `${dev}:${ino}`)).toMatch(/^no connection: /);
});

test("they have it where the journal is the output of another program", async () => {
  expect(await readFirstLine((dev, ino) => `${dev}:${ino + 1n}`)).toMatch(
    /^\d{4}-\d\d-\d\dT[\d:.]+Z no connection: /,
  );
});
