/** The token of the command line: where it comes from, and in which form. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTemporaryDir } from "../../harness/directories.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { runAgent, runToEnd } from "../../harness/tunnel/agent.ts";

let api: TestApi;
let owner: Person;
let text: string;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  text = (await mintToken(owner)).wireBytes;
});
afterAll(() => api.stop());

const open = (more: string[], env: Record<string, string> = {}) =>
  runAgent(["http", "3000", "--inspect", "off", "--json", "--server", api.server.url, ...more], {
    env,
  });

test("UNDERPASS_TOKEN is the token in base64, as `underpass tokens mint` prints it", async () => {
  await using agent = await open([], { UNDERPASS_TOKEN: `${text}\n` });
  await agent.event("ready");
});

test("a token file may contain base64", async () => {
  const file = join(await createTemporaryDir(), "token.txt");
  await writeFile(file, `${text}\n`);
  await using agent = await open(["--token-file", file], { UNDERPASS_TOKEN: "not used" });
  await agent.event("ready");
});

test("an UNDERPASS_TOKEN that is not base64 is refused before the agent connects, and not printed", async () => {
  const env = { UNDERPASS_TOKEN: "my secret" };
  await using agent = await open([], env);
  expect(await agent.exit).toBe(2);
  expect(agent.stderr).toMatch(/^underpass: UNDERPASS_TOKEN is not a token in base64.*\n$/);
  const doctor = await runToEnd(["doctor", "--server", api.server.url], { env });
  expect(doctor.stdout).toMatch(/problem Settings .*UNDERPASS_TOKEN is not a token in base64/);
  expect(agent.stderr + doctor.stdout).not.toContain("secret");
});

test("an empty token file is refused before the agent connects", async () => {
  const file = join(await createTemporaryDir(), "token.txt");
  await writeFile(file, "\n");
  await using agent = await open(["--token-file", file]);
  expect(await agent.exit).toBe(2);
  expect(agent.stderr).toBe(`underpass: the token file ${file} is empty; write a token to it\n`);
});

test("doctor names UNDERPASS_TOKEN as the token's source", async () => {
  const args = ["doctor", "--server", api.server.url];
  const { stdout } = await runToEnd(args, { env: { UNDERPASS_TOKEN: text } });
  expect(stdout).toMatch(/^ok +Settings .*token from UNDERPASS_TOKEN$/m);
  expect(stdout).toMatch(/^ok +Token /m);
});

test("without a scheme, a server on this machine is reached over http", async () => {
  const server = `localhost:${api.server.port}`;
  const args = ["login", "--setup", "WRONG", "--email", "a@b.c", "--server", server];
  const { code, stderr } = await runToEnd(args);
  expect(code).toBe(1);
  expect(stderr).not.toMatch(/TLS|does not answer/);
});

test.each([["tunnels"], ["webhooks", "shop", "--forward", "3000"], ["vpn", "office", "devices"]])(
  "a revoked token is named as the reason, by `underpass %s`",
  async (...command) => {
    const { nonce, wireBytes } = await mintToken(owner);
    await owner.delete(`/tokens/${nonce}`);
    const { code, stderr } = await runToEnd([...command, "--server", api.server.url], {
      env: { UNDERPASS_TOKEN: wireBytes },
    });
    expect(code).toBe(1);
    expect(stderr).toContain("the server does not accept this machine's token: it is not a token");
    expect(stderr).toContain(
      "\nSet UNDERPASS_TOKEN to a valid token, and run the command again.\n",
    );
  },
);

test.each([
  "networks",
  "networks delete office --yes",
  "vpn office devices",
  "vpn office add phone",
])(
  "a restricted token is named as the reason, with what to do, by `underpass %s`",
  async (command) => {
    const { wireBytes } = await mintToken(owner, { allowedSubdomains: ["shop"] });
    const { code, stderr } = await runToEnd([...command.split(" "), "--server", api.server.url], {
      env: { UNDERPASS_TOKEN: wireBytes },
    });
    expect(code).toBe(1);
    expect(stderr).toBe(
      "underpass: A token that is restricted to names or to a project can't do this. Use an unrestricted token of a member, admin or owner: underpass login\n",
    );
  },
);

test.each([
  "tunnels",
  "tokens",
  "logs",
  "networks",
  "vpn office devices",
  "webhooks shop --forward 3000",
])("a file that has no token is not called a revoked one, by `underpass %s`", async (command) => {
  const file = join(await createTemporaryDir(), "token");
  await writeFile(file, "garbage!");
  const args = [...command.split(" "), "--server", api.server.url, "--token-file", file];
  const { code, stderr } = await runToEnd(args);
  expect(code).toBe(1);
  expect(stderr).toContain(
    "the server does not accept this machine's token: it is not a token for agents of this server, was revoked, or has expired\n",
  );
});
