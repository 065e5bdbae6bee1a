/** Fakes of `wg` and `wg-quick` that store their interfaces in files and record how they were called. */
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { vi } from "vitest";
import { createTemporaryDir } from "../directories.ts";

export interface FakeWireGuard {
  /** Commands that changed something, in order: `wg set wg-home peer …`. */
  calls(): Promise<string[]>;
  /** An interface that is up, with this public key. */
  addInterface(name: string, publicKey: string): Promise<void>;
  addPeer(name: string, publicKey: string, allowedIps: string): Promise<void>;
  /** Public keys and addresses of an interface's peers. */
  peers(name: string): Promise<string[]>;
}

const SCRIPT = `
const { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
const { basename, join } = require("node:path");
const dir = DIR;
const [program, ...args] = process.argv.slice(2);
const log = () => appendFileSync(join(dir, "calls"), [program, ...args].join(" ") + "\\n");
const file = (...parts) => join(dir, "interfaces", ...parts);
const toFile = (key) => key.replaceAll("/", "_");
const peers = (name) => readdirSync(file(name, "peers")).map((each) => readFileSync(file(name, "peers", each), "utf8"));
const fail = (text) => { process.stderr.write(text + "\\n"); process.exit(1); };
if (program === "wg-quick" && args[0] === "strip") {
  process.stdout.write(readFileSync(args[1], "utf8").replace(/^(Address|MTU).*\\n/gm, ""));
} else if (program === "wg-quick") {
  log();
  const name = basename(args[1], ".conf");
  if (existsSync(file(name))) fail("wg-quick: \`" + name + "' already exists");
  mkdirSync(file(name, "peers"), { recursive: true });
  const text = readFileSync(args[1], "utf8");
  writeFileSync(file(name, "public-key"), readFileSync(args[1].replace(/[^/]*$/, "public.key"), "utf8"));
  for (const [, key, ips] of text.matchAll(/PublicKey = (\\S+)\\nAllowedIPs = (\\S+)/g))
    writeFileSync(file(name, "peers", toFile(key)), key + "\\t" + ips + "\\n");
} else if (args[0] === "show" && args[1] === "interfaces") {
  process.stdout.write(readdirSync(file()).join(" ") + "\\n");
} else if (args[0] === "show") {
  if (!existsSync(file(args[1]))) fail("Unable to access interface: No such device");
  if (args[2] === "public-key") process.stdout.write(readFileSync(file(args[1], "public-key"), "utf8"));
  if (args[2] === "allowed-ips") process.stdout.write(peers(args[1]).join(""));
} else if (args[0] === "syncconf") {
  log();
  writeFileSync(join(dir, "syncconf"), readFileSync(args[2], "utf8"));
} else if (args[0] === "set") {
  log();
  const peer = file(args[1], "peers", toFile(args[3]));
  if (args[4] === "remove") rmSync(peer);
  else writeFileSync(peer, args[3] + "\\t" + args[5].replaceAll(",", " ") + "\\n");
}
`;

/** Puts the fakes first on this process's PATH until the test's environment is restored. */
export async function fakeWireGuard(): Promise<FakeWireGuard> {
  const dir = await createTemporaryDir();
  await mkdir(join(dir, "interfaces"));
  const script = join(dir, "fake.cjs");
  await writeFile(script, SCRIPT.replace("DIR", JSON.stringify(dir)));
  for (const name of ["wg", "wg-quick"]) {
    await writeFile(
      join(dir, name),
      `#!/bin/sh\nexec "${process.execPath}" "${script}" ${name} "$@"\n`,
    );
    await chmod(join(dir, name), 0o755);
  }
  vi.stubEnv("PATH", [dir, process.env.PATH].join(delimiter));
  const peerDir = (name: string): string => join(dir, "interfaces", name, "peers");
  return {
    async calls() {
      const text = await readFile(join(dir, "calls"), "utf8").catch(() => "");
      return text.split("\n").filter((line) => line !== "");
    },
    async addInterface(name, publicKey) {
      await mkdir(peerDir(name), { recursive: true });
      await writeFile(join(dir, "interfaces", name, "public-key"), `${publicKey}\n`);
    },
    async addPeer(name, publicKey, allowedIps) {
      const file = join(peerDir(name), publicKey.replaceAll("/", "_"));
      await writeFile(file, `${publicKey}\t${allowedIps}\n`);
    },
    async peers(name) {
      const files = await readdir(peerDir(name));
      const texts = await Promise.all(
        files.map((each) => readFile(join(peerDir(name), each), "utf8")),
      );
      return texts.map((text) => text.trim().replace("\t", " ")).sort();
    },
  };
}
