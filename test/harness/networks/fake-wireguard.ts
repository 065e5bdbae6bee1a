/** Fakes of `wg` and `wg-quick` that store their interfaces in files and record how they were called. */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
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

/** In sh, because a test runs it many times, and a Node.js process takes longer to start than a test. */
const SCRIPT = String.raw`#!/bin/sh
dir='DIR'
program=$(basename "$0")
log() { echo "$program $*" >> "$dir/calls"; }
fail() { echo "$1" >&2; exit 1; }
peer_file() { printf '%s' "$dir/interfaces/$1/peers/$(printf '%s' "$2" | tr / _)"; }
case "$program $1" in
"wg-quick strip")
  grep -Ev '^(Address|MTU)' "$2"
  ;;
"wg-quick "*)
  log "$@"
  name=$(basename "$2" .conf)
  [ -e "$dir/interfaces/$name" ] && fail "wg-quick: '$name' already exists"
  mkdir -p "$dir/interfaces/$name/peers"
  cat "$(dirname "$2")/public.key" > "$dir/interfaces/$name/public-key"
  sed -n 's/^PublicKey = //p; s/^AllowedIPs = //p' "$2" | while read -r key && read -r ips; do
    printf '%s\t%s\n' "$key" "$ips" > "$(peer_file "$name" "$key")"
  done
  ;;
"wg show")
  if [ "$2" = interfaces ]; then ls "$dir/interfaces" | tr '\n' ' '; exit; fi
  [ -e "$dir/interfaces/$2" ] || fail "Unable to access interface: No such device"
  case $3 in
  public-key) cat "$dir/interfaces/$2/public-key" ;;
  allowed-ips) find "$dir/interfaces/$2/peers" -type f -exec cat {} + ;;
  endpoints)
    find "$dir/interfaces/$2/peers" -type f -exec cut -f 1 {} + | while read -r key; do
      printf '%s\t127.0.0.1:51820\n' "$key"
    done
    ;;
  esac
  ;;
"wg syncconf")
  log "$@"
  cat "$3" > "$dir/syncconf"
  ;;
"wg set")
  log "$@"
  file=$(peer_file "$2" "$4")
  if [ "$5" = remove ]; then rm "$file"; else printf '%s\t%s\n' "$4" "$(printf '%s' "$6" | tr , ' ')" > "$file"; fi
  ;;
esac
`;

/** Puts the fakes first on this process's PATH until the test's environment is restored. */
export async function fakeWireGuard(): Promise<FakeWireGuard> {
  const dir = await createTemporaryDir();
  await mkdir(join(dir, "interfaces"));
  for (const name of ["wg", "wg-quick"]) {
    await writeFile(join(dir, name), SCRIPT.replace("DIR", dir), { mode: 0o755 });
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
