/** The examples of docs/underpass-yml.md are valid, for the agent and for the JSON Schema in the package. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { parseConfig } from "../../agent/config/parse-config.ts";
import { buildJsonSchema } from "../../agent/config/schema.ts";
import { HTTP_TUNNEL_OPTIONS } from "../../agent/tunnel/http-options.ts";
import { TCP_TUNNEL_OPTIONS } from "../../agent/tcp/tcp-options.ts";
import { ROOT } from "../../self-host/build/build.ts";

const page = readFileSync(join(ROOT, "docs/underpass-yml.md"), "utf8");
const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, example]) => example!);
const schema = JSON.parse(
  readFileSync(join(ROOT, "agent/underpass.schema.json"), "utf8"),
) as object;
const isValid = new Ajv2020({ strict: false }).compile(schema);

test("the schema in the package is the one that `underpass start --schema` prints", () => {
  expect(schema).toEqual(buildJsonSchema());
});

test("every example is valid", async () => {
  expect(examples.length).toBeGreaterThan(0);
  for (const example of examples) {
    const OFFICE_ADDRESSES = "192.0.2.1, 2001:db8::/32";
    const { tunnels } = await parseConfig(example, "underpass.yml", { OFFICE_ADDRESSES });
    expect(tunnels.map(({ name }) => name)).toEqual(["web", "api", "database"]);
    expect(isValid(parse(example))).toBe(true);
  }
});

test("the schema has every option of the command line", () => {
  const text = JSON.stringify(schema);
  const options = { ...HTTP_TUNNEL_OPTIONS, ...TCP_TUNNEL_OPTIONS };
  for (const { help } of Object.values(options)) expect(text).toContain(JSON.stringify(help));
});

describe("the schema and the agent refuse the same files:", () => {
  test.each([
    ["an unknown key", { version: 1, tunnels: { web: { local: 1, colour: "red" } } }],
    ["another version", { version: 2, tunnels: { web: { local: 1 } } }],
    ["no local server", { version: 1, tunnels: { web: {} } }],
    ["another protocol", { version: 1, tunnels: { web: { local: 1, protocol: "udp" } } }],
    ["a port of an http tunnel", { version: 1, tunnels: { web: { local: 1, remote_port: 1 } } }],
    ["text for a flag", { version: 1, tunnels: { web: { local: 1, insecure_upstream: "x" } } }],
  ])("%s", async (_, file) => {
    expect(isValid(file)).toBe(false);
    await expect(parseConfig(JSON.stringify(file), "underpass.yml", {})).rejects.toThrow(
      /^underpass\.yml:1:/,
    );
  });

  test.each([
    [
      "a schema of its own",
      { $schema: "underpass.schema.json", version: 1, tunnels: { web: { local: 1 } } },
    ],
    [
      "one value of a list",
      { version: 1, tunnels: { db: { local: 1, protocol: "tcp", allow: "10.0.0.0/8" } } },
    ],
  ])("and accept %s", async (_, file) => {
    expect(isValid(file)).toBe(true);
    const { tunnels } = await parseConfig(JSON.stringify(file), "underpass.yml", {});
    expect(tunnels).toHaveLength(1);
  });
});
