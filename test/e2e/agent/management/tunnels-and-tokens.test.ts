/** `underpass tunnels` and `underpass tokens` as processes; their effects are read through the API. */
import { once } from "node:events";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { MintedToken, Token } from "../../../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { mintToken } from "../../../harness/server/api.ts";
import { canOpenTerminals, typeCommand } from "../../../harness/terminal.ts";
import { runToEnd } from "../../../harness/tunnel/agent.ts";
import { startTunnelOwner, type TunnelOwner } from "../../../harness/tunnel/owned-tunnel.ts";
import { ROOT } from "../../../../self-host/build/build.ts";

let world: TunnelOwner;
let token: Buffer;
let directory: string;

beforeAll(async () => {
  [world, directory] = await Promise.all([startTunnelOwner(), createTemporaryDir()]);
  token = Buffer.from((await mintToken(world.owner)).wireBytes, "base64");
});
afterAll(async () => {
  await world.stop();
  await rm(directory, { recursive: true, force: true });
});

const run = (...args: string[]) =>
  runToEnd([...args, "--server", world.api.server.url, "--token-file", "TOKEN"], { token });

/** With a bearer in UNDERPASS_ACCESS_TOKEN. */
const runAs = (bearer: string, ...args: string[]) =>
  runToEnd([...args, "--server", world.api.server.url], {
    env: { UNDERPASS_ACCESS_TOKEN: bearer },
  });
const runAsOwner = (...args: string[]) => runAs(world.owner.accessToken, ...args);

async function reserve(subdomain: string, more: object = {}): Promise<Tunnel> {
  const body = { subdomain, localPort: 3000, ...more };
  return (await world.owner.post<Tunnel>("/tunnels", body)).body;
}
const listTunnels = async () => (await world.owner.get<Tunnel[]>("/tunnels")).body;
const listTokens = async () => (await world.owner.get<Token[]>("/tokens")).body;
const findListed = async (name: string) => (await listTokens()).find((one) => one.name === name);

describe("underpass tunnels", () => {
  test("lists the tunnels as a table and as one JSON object per line, with the token of the machine", async () => {
    const { id, publicUrl } = await reserve("managed-list");
    const table = await run("tunnels");
    expect(table).toMatchObject({ code: 0, stderr: "" });
    const [header, ...rows] = table.stdout.trim().split("\n");
    expect(header).toMatch(/^NAME +URL +STATE +AGENT +REQUESTS +PROJECT +EXPIRES$/);
    const row = rows.find((line) => line.startsWith("managed-list "))!;
    expect(row.split(/ {2,}/)).toEqual([
      ...["managed-list", publicUrl, "inactive", "-", "0", "default", "never"],
    ]);
    // Piped, the columns of all rows begin at the same place.
    expect(row.indexOf(publicUrl)).toBe(header!.indexOf("URL"));
    const listed = (await run("tunnels", "list", "--state", "inactive", "--json")).json<Tunnel>();
    expect(listed.find((tunnel) => tunnel.id === id)).toEqual(
      (await listTunnels()).find((tunnel) => tunnel.id === id),
    );
    expect((await run("tunnels", "--state", "expired", "--json")).stdout).toBe("");
  });

  test("reads every page of a long list", async () => {
    const owner = await world.api.owner();
    const { wireBytes } = await mintToken(owner);
    await world.api.sql(
      `insert into tunnels (id, org_id, project_id, name, subdomain, protocol, local_port, status)
        select gen_random_uuid(), org_id, id, 'paged-' || n, 'paged-' || n, 'http', 1, 'inactive'
        from generate_series(1, 450) n, projects where org_id = $1`,
      [owner.orgId],
    );
    const result = await runToEnd(
      ["tunnels", "--json", "--server", world.api.server.url, "--token-file", "TOKEN"],
      { token: Buffer.from(wireBytes, "base64") },
    );
    expect(new Set(result.json<Tunnel>().map(({ id }) => id)).size).toBe(450);
  });

  test("shows a tunnel that is named by its name, host, URL or id", async () => {
    const { id, publicUrl } = await reserve("managed-show");
    const { host, hostname } = new URL(publicUrl);
    for (const name of ["managed-show", host, hostname, publicUrl, `${publicUrl}/page`, id]) {
      const [shown] = (await run("tunnels", "show", name, "--json")).json<Tunnel>();
      expect([name, shown?.id]).toEqual([name, id]);
    }
    const { stdout } = await run("tunnels", "show", "managed-show");
    expect(stdout).toMatch(/^Name +managed-show$/m);
    expect(stdout).toMatch(/^Agent +not connected$/m);
    expect(stdout).toMatch(/^Visitors +everyone$/m);
  });

  test("says how clients reach a tunnel without a public port", async () => {
    const { id } = await reserve("managed-private");
    await world.api.sql("update tunnels set protocol = 'tcp' where id = $1", [id]);
    const { stdout } = await run("tunnels", "show", "managed-private");
    expect(stdout).toMatch(/^URL +private$/m);
    expect(stdout).toMatch(/^Visitors +with a token, through underpass connect managed-private$/m);
  });

  test("stops and starts a tunnel", async () => {
    const site = createServer((_, answer) => answer.end("hello")).listen(0, "127.0.0.1");
    await once(site, "listening");
    const { port } = site.address() as AddressInfo;
    const tunnel = await world.expose("managed-stop", port);
    expect((await tunnel.visit()).status).toBe(200);
    const stopped = await run("tunnels", "stop", "managed-stop");
    expect(stopped).toMatchObject({ code: 0, stderr: "" });
    expect(stopped.stdout).toContain("managed-stop is stopped: its agent is disconnected, and");
    expect((await tunnel.visit()).status).toBe(502);
    const howToStart = "underpass tunnels start managed-stop";
    const listed = await run("tunnels", "--state", "stopped");
    expect(listed.stdout).toMatch(/^managed-stop +\S+ +stopped +-/m);
    expect(listed.stderr).toContain(howToStart);
    const { stdout } = await run("tunnels", "show", "managed-stop");
    expect(stdout).toMatch(/^State +stopped since /m);
    expect(stdout).toContain(howToStart);
    const started = await run("tunnels", "start", "managed-stop", "--json");
    expect(started.json()).toEqual([
      { id: tunnel.id, subdomain: "managed-stop", status: "active", stoppedAt: null },
    ]);
    expect((await tunnel.getListed()).status).toBe("active");
    site.close();
  });

  test("says what a start and a stop change of a tunnel without an agent", async () => {
    const { id } = await reserve("managed-alone");
    const say = async (subcommand: string) =>
      (await run("tunnels", subcommand, "managed-alone")).stdout;
    const start = "start the agent on the machine with the local server.\n";
    expect(await say("start")).toBe(`managed-alone was not stopped, but has no agent: ${start}`);
    const [stopped] = (await run("tunnels", "stop", "managed-alone", "--json")).json<Tunnel>();
    const stoppedAt = (await listTunnels()).find((tunnel) => tunnel.id === id)?.stoppedAt;
    expect(stopped).toEqual({ id, subdomain: "managed-alone", status: "offline", stoppedAt });
    expect(stoppedAt).toEqual(expect.any(String));
    expect(await say("stop")).toBe(`managed-alone was already stopped, at ${stoppedAt}.\n`);
    expect(await say("start")).toBe(
      `managed-alone is started: an agent that waits for it connects within seconds; if none does, ${start}`,
    );
    // The API calls it active, but no agent is back.
    const offline = await run("tunnels", "--state", "offline");
    expect(offline.stdout).toMatch(/^managed-alone +\S+ +offline +-/m);
    expect((await run("tunnels", "--state", "active")).stdout).not.toContain("managed-alone");
    expect(await say("stop")).toMatch(/^managed-alone is stopped: it has no agent, and visitors/);
  });

  test("deletes a tunnel with --yes, and without a terminal not without it", async () => {
    const { id } = await reserve("managed-delete");
    const exists = async () => (await listTunnels()).some((tunnel) => tunnel.id === id);
    const refused = await run("tunnels", "delete", "managed-delete");
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("--yes");
    expect(await exists()).toBe(true);
    expect((await run("tunnels", "delete", "managed-delete", "--yes")).code).toBe(0);
    expect(await exists()).toBe(false);
  });

  test("stops, starts and deletes several tunnels, and changes none when one name is wrong", async () => {
    const names = ["managed-many-1", "managed-many-2"];
    const tunnels = await Promise.all(names.map((name) => reserve(name)));
    const countListed = async () =>
      (await listTunnels()).filter(({ subdomain }) => names.includes(subdomain)).length;
    const wrong = await run("tunnels", "delete", ...names, "managed-many-3", "--yes");
    expect([wrong.code, wrong.stderr]).toEqual([
      1,
      expect.stringContaining("there is no tunnel managed-many-3"),
    ]);
    expect(await countListed()).toBe(2);
    for (const subcommand of ["stop", "start"]) {
      const { stdout } = await run("tunnels", subcommand, ...names);
      expect(stdout.match(/^managed-many-[12] is (stopped|started)/gm)).toHaveLength(2);
    }
    // The same tunnel by its name and its id is deleted once.
    const deleted = await run("tunnels", "delete", ...names, tunnels[0]!.id, "--yes", "--json");
    expect(deleted.json()).toEqual(
      tunnels.map(({ id, subdomain }) => ({ id, subdomain, deleted: true })),
    );
    expect(await countListed()).toBe(0);
  });

  test.runIf(canOpenTerminals())("asks before it deletes, at a terminal", async () => {
    const { id } = await reserve("managed-asked");
    // A TCP tunnel without a public port.
    await world.api.sql("update tunnels set protocol = 'tcp' where id = $1", [id]);
    const home = join(directory, "home");
    await mkdir(home, { recursive: true });
    const command = `${process.execPath} ${join(ROOT, "agent/bin/launch.js")} tunnels delete managed-asked --server ${world.api.server.url}`;
    const env = { HOME: home, UNDERPASS_ACCESS_TOKEN: world.owner.accessToken };
    for (const [answer, code] of [
      ["n", 1],
      ["y", 0],
    ] as const) {
      await using typed = typeCommand(command, { cwd: directory, env, atTerminal: true });
      await typed.waitForOutput(/Delete managed-asked \(private\) with .*\? \[y\/N\]/);
      typed.write(`${answer}\r`);
      expect(await typed.exit).toBe(code);
      const exists = (await listTunnels()).some((tunnel) => tunnel.id === id);
      expect([answer, exists]).toEqual([answer, answer === "n"]);
    }
  });

  test("says which tunnels there are when a name is wrong, and which match when it is ambiguous", async () => {
    const owner = await world.api.owner();
    const explain = async (name: string) => {
      const { code, stderr } = await runAs(owner.accessToken, "tunnels", "show", name);
      expect(code).toBe(1);
      return stderr;
    };
    const unknown = "underpass: there is no tunnel unknown";
    expect(await explain("unknown")).toBe(`${unknown}; you have none yet\n`);
    for (const at of [1, 2]) {
      await owner.post("/tunnels", { subdomain: `known-${owner.orgId}-${at}`, localPort: 1 });
    }
    expect(await explain("unknown")).toBe(
      `${unknown}; your tunnels: known-${owner.orgId}-2, known-${owner.orgId}-1\n`,
    );
    expect(await explain(`knwon-${owner.orgId}-1`)).toContain(
      `; did you mean known-${owner.orgId}-1? your tunnels: `,
    );
    for (const slug of ["east", "west"]) {
      await world.owner.post("/projects", { name: slug, slug });
      await reserve("managed-twin", { projectSlug: slug });
    }
    const ambiguous = await run("tunnels", "stop", "managed-twin");
    expect(ambiguous.code).toBe(2);
    expect(ambiguous.stderr).toMatch(/2 tunnels are called managed-twin.*managed-twin-(east|west)/);
  });

  test("says what a restricted or revoked token can't do, and how to get another one", async () => {
    const restricted = await mintToken(world.owner, { allowedSubdomains: ["shop"] });
    const runWith = ({ wireBytes }: MintedToken) =>
      runToEnd(["tunnels", "--server", world.api.server.url, "--token-file", "TOKEN"], {
        token: Buffer.from(wireBytes, "base64"),
      });
    const forbidden = await runWith(restricted);
    expect(forbidden.code).toBe(1);
    expect(forbidden.stderr).toBe(
      "underpass: A token that is restricted to names or to a project can't do this. Run `underpass login` for a token without restrictions, or set UNDERPASS_ACCESS_TOKEN.\n",
    );
    const revoked = await mintToken(world.owner);
    await world.owner.delete(`/tokens/${revoked.nonce}`);
    const unauthorized = await runWith(revoked);
    expect(unauthorized.code).toBe(1);
    expect(unauthorized.stderr).toMatch(
      /\nWrite a valid token to \S+\/token, and run the command again\.\n$/,
    );
  });
});

describe("underpass tokens", () => {
  test("lists the valid tokens with the token of the machine, and all of them with --all", async () => {
    const { nonce } = await mintToken(world.owner, { name: "managed-old" });
    await world.owner.delete(`/tokens/${nonce}`);
    const nonces = async (...options: string[]) =>
      (await run("tokens", "--json", ...options)).json<Token>().map((one) => one.nonce);
    expect(await nonces()).not.toContain(nonce);
    expect(await nonces("--all")).toContain(nonce);
    const { stdout } = await run("tokens", "list", "--all");
    expect(stdout).toMatch(new RegExp(`^managed-old +${nonce} .* revoked$`, "m"));
  });

  test("mints a token into a file that only its owner can read", async () => {
    const output = join(directory, "ci.token");
    const minted = await runAsOwner(
      ...["tokens", "mint", "managed-ci", "--valid-for", "2d", "--allowed-subdomain", "ci-*"],
      ...["--tunnels", "3", "--bandwidth", "7", "--budget", "2.50", "--output", output],
    );
    expect(minted).toMatchObject({ code: 0, stdout: "" });
    expect(minted.stderr).toContain("underpass http 3000 --subdomain ci-shop --token-file ");
    const listed = (await findListed("managed-ci"))!;
    expect(listed).toMatchObject({
      allowedSubdomains: ["ci-*"],
      tunnelQuota: 3,
      bandwidthLimitMbps: 7,
      monthlyBudgetUsdCents: 250,
    });
    expect(listed.expiresAt - listed.issuedAt).toBe(2 * 24 * 3600);
    if (process.platform !== "win32") expect((await stat(output)).mode & 0o777).toBe(0o600);
    const bytes = await readFile(output);
    expect(bytes.includes(Buffer.from(listed.nonce, "hex"))).toBe(true);
    const again = await runAsOwner("tokens", "mint", "managed-ci-2", "--output", output);
    expect(again.code).toBe(2);
    expect(again.stderr).toContain("already exists");
    const missing = join(directory, "missing");
    const nowhere = ["--output", join(missing, "ci.token")];
    const refused = await runAsOwner("tokens", "mint", "managed-ci-2", ...nowhere);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain(`there is no directory ${missing}; create it, or`);
    expect(await findListed("managed-ci-2")).toBeUndefined();
  });

  test("prints the bytes of a minted token once, in base64 and nothing else", async () => {
    const { stdout, stderr } = await runAsOwner("tokens", "mint", "managed-printed");
    const { nonce } = (await findListed("managed-printed"))!;
    expect(Buffer.from(stdout.trim(), "base64").includes(Buffer.from(nonce, "hex"))).toBe(true);
    expect(stderr).toContain("shown only once");
  });

  test("revokes a token whose bytes can't be written, or whose budget can't be set", async () => {
    const output = join(directory, "a name that is too long ".repeat(20));
    const unwritten = await runAsOwner("tokens", "mint", "managed-lost", "--output", output);
    expect(unwritten.code).toBe(1);
    expect(unwritten.stderr).toContain("the token was revoked");
    expect((await findListed("managed-lost"))!.revoked).toBe(true);
    const member = await world.api.colleague(world.owner, "member");
    const refused = await runAs(
      member.accessToken,
      ...["tokens", "mint", "managed-no-budget", "--budget", "5"],
    );
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect((await findListed("managed-no-budget"))!.revoked).toBe(true);
  });

  test("says that a token stays valid when the server can't revoke it", async () => {
    const minted = await mintToken(world.owner);
    const server = createServer(({ method }, answer) => {
      answer.statusCode = method === "POST" ? 200 : 503;
      answer.end(JSON.stringify(minted));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const args = ["tokens", "mint", "kept", "--budget", "5", "--server", url];
    const { code, stderr } = await runToEnd(args, { env: { UNDERPASS_ACCESS_TOKEN: "a" } });
    expect([code, stderr]).toEqual([1, expect.stringContaining(`tokens revoke ${minted.nonce}`)]);
    server.close();
  });

  test("rotates and revokes a token that is named by its name or the beginning of its nonce", async () => {
    const old = await mintToken(world.owner, { name: "managed-turn" });
    const output = join(directory, "turned.token");
    const rotated = await runAsOwner(
      ...["tokens", "rotate", old.nonce.slice(0, 12), "--yes", "--json", "--output", output],
    );
    const [renewed] = rotated.json<Token>();
    expect(renewed!.nonce).not.toBe(old.nonce);
    expect(JSON.stringify(renewed)).not.toContain('wireBytes"');
    expect((await runAsOwner("tokens", "revoke", "managed-turn")).code).toBe(2);
    expect((await runAsOwner("tokens", "revoke", "managed-turn", "--yes")).code).toBe(0);
    const states = (await listTokens()).filter(({ name }) => name === "managed-turn");
    expect(states.map(({ revoked }) => revoked)).toEqual([true, true]);
  });

  test("mints a token for a project with a master key", async () => {
    await world.owner.post("/projects", { name: "managed", slug: "managed" });
    const { body } = await world.owner.post<MintedToken>("/tokens/master", { name: "key" });
    const mint = (...more: string[]) =>
      runAs(body.bearer!, "tokens", "mint", "managed-pr", ...more);
    expect((await mint("--project", "managed", "--json")).json()).toMatchObject([
      { name: "managed-pr", projectSlug: "managed" },
    ]);
    const refused = await mint();
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("a master key only mints tokens for a --project");
  });

  test("the option --token-file takes precedence over UNDERPASS_ACCESS_TOKEN, and the variable of the file does not", async () => {
    const file = join(directory, "restricted.token");
    const restricted = await mintToken(world.owner, { allowedSubdomains: ["shop"] });
    await writeFile(file, Buffer.from(restricted.wireBytes, "base64"));
    const accessToken = world.owner.accessToken;
    const runBoth = (args: string[], env: Record<string, string> = {}) =>
      runToEnd([...args, "--server", world.api.server.url], {
        env: { UNDERPASS_ACCESS_TOKEN: accessToken, ...env },
      });
    const listed = await runBoth(["tunnels", "--token-file", file]);
    expect(listed.code).toBe(1);
    expect(listed.stderr).toMatch(
      /restricted to names .* To use UNDERPASS_ACCESS_TOKEN, leave out --token-file\.\n$/,
    );
    const minted = await runBoth(["tokens", "mint", "more", "--token-file", file]);
    expect(minted.code).toBe(2);
    expect(minted.stderr).toContain("or leave out --token-file to use UNDERPASS_ACCESS_TOKEN\n");
    expect((await runBoth(["tunnels"], { UNDERPASS_TOKEN_FILE: file })).code).toBe(0);
  });

  test("says that the machine's own token can't change tokens, and what can", async () => {
    for (const args of [
      ["mint", "more"],
      ["rotate", "test", "--yes"],
      ["revoke", "test", "--yes"],
    ]) {
      const refused = await run("tokens", ...args);
      expect([args, refused.code]).toEqual([args, 2]);
      expect(refused.stderr).toContain(
        `underpass: this machine's own token can't ${args[0]} a token; use ${world.api.server.url}/tokens in a browser, or set UNDERPASS_ACCESS_TOKEN to `,
      );
    }
    const wrong = await runAs("a.b.c", "tokens");
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain("does not accept UNDERPASS_ACCESS_TOKEN");
  });
});
