/**
 * `node bench/peers/build.ts [frp] [rathole]`: builds other tunnels from their sources, for benchmarks that compare with them
 * if they exist. frp needs git and Go, rathole needs Cargo.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PEER_PROGRAMS } from "./peer.ts";

const FRP_VERSION = "v0.70.1";
const RATHOLE_VERSION = "0.5.0";

const BUILDERS: Record<string, (directory: string) => void> = {
  frp(directory) {
    const url = "https://github.com/fatedier/frp";
    run("git", ["clone", "--depth", "1", "--branch", FRP_VERSION, url, directory]);
    // `noweb` leaves out the dashboards, which would have to be built with npm.
    const go = ["build", "-tags", "noweb", "-o", `${PEER_PROGRAMS}/`, "./cmd/frps", "./cmd/frpc"];
    run("go", go, directory);
  },
  rathole(directory) {
    const features = ["--no-default-features", "--features", "server,client"];
    // Not `--locked`: current compilers refuse the version of a dependency in its lock file.
    const version = ["--version", RATHOLE_VERSION];
    run("cargo", ["install", "rathole", ...version, ...features, "--root", directory]);
    copyFileSync(join(directory, "bin/rathole"), join(PEER_PROGRAMS, "rathole"));
  },
};

function run(command: string, args: string[], cwd?: string): void {
  execFileSync(command, args, { stdio: "inherit", cwd });
}

mkdirSync(PEER_PROGRAMS, { recursive: true });
const names = process.argv.slice(2);
for (const name of names.length > 0 ? names : Object.keys(BUILDERS)) {
  const build = BUILDERS[name];
  if (!build)
    throw new Error(`unknown program ${name}: choose from ${Object.keys(BUILDERS).join(", ")}`);
  const directory = mkdtempSync(join(tmpdir(), `${name}-`));
  try {
    build(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
