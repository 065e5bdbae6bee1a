/** The units of systemd, the image and its example, as far as they can be checked without installing them. */
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { DRAIN_TIMEOUT_MS } from "../../../protocol/limits.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import { CHILD_STOP_MAX_MS } from "../../../self-host/processes/child.ts";
import { readSettings } from "../../../self-host/settings.ts";

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const { scripts, dependencies } = JSON.parse(read("package.json")) as {
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
};
const UNITS = readdirSync(join(ROOT, "packaging/systemd")).filter((name) =>
  /\.(service|timer)$/.test(name),
);
/** More than the drain and the stops of all programs can take: only PostgreSQL's takes up to `CHILD_STOP_MAX_MS`. */
const STOP_MAX_SECONDS = (DRAIN_TIMEOUT_MS + 3 * CHILD_STOP_MAX_MS) / 1_000;

function readUnit(name: string): Map<string, string[]> {
  const lines = read(`packaging/systemd/${name}`).matchAll(/^(\w+)=(.*)$/gm);
  const values = [...lines].map(([, key, value]) => ({ key: key!, value: value! }));
  return new Map(
    [...Map.groupBy(values, ({ key }) => key)].map(([key, all]) => [
      key,
      all.map(({ value }) => value),
    ]),
  );
}

test.for(UNITS)("systemd accepts %s without a warning", async (name, { skip }) => {
  const run = promisify(execFile);
  const isInstalled = await run("systemd-analyze", ["--version"]).catch(() => undefined);
  if (!isInstalled) skip("systemd-analyze is not installed");
  const { stderr } = await run("systemd-analyze", [
    "verify",
    "--man=no",
    join(ROOT, "packaging/systemd", name),
  ]);
  // It also warns of programs that are elsewhere on this machine.
  const warnings = stderr.split("\n").filter((line) => !/^$|is not executable/.test(line));
  expect(warnings).toEqual([]);
});

test.each(UNITS.filter((name) => name.endsWith(".service")))(
  "%s runs a script of package.json, as a user without privileges",
  (name) => {
    const unit = readUnit(name);
    const [, script = ""] = /npm (?:run --silent )?(\w+)/.exec(unit.get("ExecStart")![0]!)!;
    expect(scripts).toHaveProperty(script);
    expect(unit.get("User")).toEqual(["underpass"]);
    expect(unit.get("ProtectSystem")).toEqual(["strict"]);
    expect(unit.get("NoNewPrivileges")).toEqual(["yes"]);
    expect(unit.get("CapabilityBoundingSet")).toEqual([""]);
  },
);

test("systemd gives the server the time that its stop can take", () => {
  const unit = readUnit("underpass.service");
  expect(Number(unit.get("TimeoutStopSec")![0])).toBeGreaterThan(STOP_MAX_SECONDS);
  expect(unit.get("KillMode")).toEqual(["mixed"]);
});

const INSTRUCTIONS = read("Dockerfile")
  .replaceAll(/^\s*#.*\n/gm, "")
  .replaceAll("\\\n", " ")
  .split("\n")
  .flatMap((line) => {
    const [, instruction, rest] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    return instruction === undefined ? [] : [{ instruction, rest: rest! }];
  });
const findInstructions = (name: string) =>
  INSTRUCTIONS.filter(({ instruction }) => instruction === name).map(({ rest }) => rest);

test("the image has the Node.js that package.json names", () => {
  const images = findInstructions("FROM");
  expect(images.length).toBe(2);
  for (const image of images) expect(image).toContain(`node:${dependencies.node}-`);
});

test("the image runs a script of package.json, not as root", () => {
  const [, script = ""] = JSON.parse(findInstructions("CMD").at(-1)!) as string[];
  expect(scripts).toHaveProperty(script);
  const [user = "root"] = findInstructions("USER");
  expect(findInstructions("RUN").join(" ")).toMatch(
    new RegExp(`useradd .*--uid [1-9]\\d+ .*${user}`),
  );
  expect(user).not.toBe("root");
});

test("the image's settings are valid, and its data is in the volume", () => {
  const environment = Object.fromEntries(
    findInstructions("ENV")
      .join(" ")
      .split(/\s+/)
      .map((pair) => pair.split("=") as [string, string]),
  );
  expect(readSettings(environment)).toMatchObject({ host: "0.0.0.0", port: 8787 });
  expect(findInstructions("VOLUME")).toEqual([environment.DATA_DIR]);
});

const ignored = read(".dockerignore")
  .split("\n")
  .filter((line) => /^[^#]/.test(line));

/** Whether a file is in the image: of the patterns that match it, the last one decides. */
function isInImage(path: string): boolean {
  const names = ignored.map((line) => ({ name: line.replace("!", ""), isIn: line[0] === "!" }));
  const last = names.findLast(({ name }) => path === name || path.startsWith(`${name}/`));
  return last?.isIn ?? true;
}

test("nothing that the build needs is left out of the image, and no secret is in it", () => {
  for (const needed of [
    "package.json",
    "package-lock.json",
    "self-host",
    "workers",
    "migrations",
  ]) {
    expect(existsSync(join(ROOT, needed))).toBe(true);
    expect(ignored).not.toContain(needed);
  }
  for (const secret of [".env", ".dev.vars", ".underpass", ".git", "**/node_modules"]) {
    expect(ignored).toContain(secret);
  }
  for (const path of ignored.filter((one) => /^[a-z]/.test(one) && one !== "agent/executables")) {
    expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
  }
});

test("the image has each configuration of TypeScript that tsconfig.json names: Vite reads all of them", () => {
  const { references } = JSON.parse(read("tsconfig.json")) as { references: { path: string }[] };
  const files = references.map(({ path }) =>
    join(path, path.endsWith(".json") ? "" : "tsconfig.json").replace(/\/$/, ""),
  );
  expect(files).toContain("test/tsconfig.json");
  expect(files.filter((file) => !existsSync(join(ROOT, file)) || !isInImage(file))).toEqual([]);
  expect(isInImage("test/run.ts")).toBe(false);
});

test("the example for Docker Compose has valid settings, and enough time to stop", () => {
  const { services } = parse(read("packaging/docker/compose.yml")) as {
    services: {
      underpass: {
        environment: Record<string, string>;
        ports: string[];
        stop_grace_period: string;
        read_only: boolean;
      };
    };
  };
  const { environment, ports, stop_grace_period, read_only } = services.underpass;
  const { relay } = readSettings(environment);
  const range = `${relay!.ports.first}-${relay!.ports.last}`;
  expect(ports).toContain(`${range}:${range}/udp`);
  expect(parseInt(stop_grace_period, 10)).toBeGreaterThan(STOP_MAX_SECONDS);
  expect(read_only).toBe(true);
});
