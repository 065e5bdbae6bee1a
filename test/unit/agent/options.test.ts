import { afterEach, describe, expect, test, vi } from "vitest";
import { HTTP } from "../../../agent/commands/table/http.ts";
import { START } from "../../../agent/commands/table/start.ts";
import { TCP } from "../../../agent/commands/table/tcp.ts";
import {
  parseOptions,
  UsageError,
  type OptionSpec,
  type OptionSpecs,
} from "../../../agent/options.ts";
import { ORIGIN_OPTIONS } from "../../../agent/origin/origin-options.ts";

const SPECS = {
  "token-file": { kind: "text", placeholder: "FILE", help: "where the token is" },
  json: { kind: "flag", help: "for programs" },
} as const satisfies Record<string, OptionSpec>;

afterEach(() => vi.unstubAllEnvs());

describe("an option", () => {
  test("is parsed in both notations", async () => {
    expect(await parseOptions(["--token-file", "a", "--json", "3000"], SPECS)).toEqual({
      values: { "token-file": "a", json: true },
      positionals: ["3000"],
    });
    expect((await parseOptions(["3000", "--token-file=b"], SPECS)).values["token-file"]).toBe("b");
  });

  test("can be set in the environment, and the command line takes precedence", async () => {
    vi.stubEnv("UNDERPASS_TOKEN_FILE", "from-env");
    vi.stubEnv("UNDERPASS_JSON", "1");
    expect((await parseOptions([], SPECS)).values).toEqual({
      "token-file": "from-env",
      json: true,
    });
    expect((await parseOptions(["--token-file", "a"], SPECS)).values["token-file"]).toBe("a");
  });

  test.each(["", "0", "false"])(
    "that is a flag is not set by %j in the environment",
    async (value) => {
      vi.stubEnv("UNDERPASS_JSON", value);
      expect((await parseOptions([], SPECS)).values.json).toBe(false);
    },
  );

  test.each([["--unknown"], ["--token-file"], ["--json=yes"], ["-x"]])(
    "that is not valid (%s) is reported in one line",
    async (...args) => {
      let message = "";
      try {
        await parseOptions(args, SPECS);
      } catch (error) {
        expect(error).toBeInstanceOf(UsageError);
        ({ message } = error as UsageError);
      }
      expect(message).toMatch(/^[^\n]+$/);
    },
  );
});

test("a flag in the environment is 1 or 0, and nothing else", async () => {
  vi.stubEnv("UNDERPASS_JSON", "yes");
  await expect(parseOptions([], { json: { kind: "flag", help: "" } })).rejects.toThrow(
    new UsageError("UNDERPASS_JSON must be 1 or 0, not yes"),
  );
});

test("a list is given by repeating its option, or with commas", async () => {
  const specs = { allow: { kind: "list", help: "" } } as const;
  expect((await parseOptions(["--allow", "a", "--allow=b"], specs)).values).toEqual({
    allow: ["a", "b"],
  });
  expect((await parseOptions(["--allow", "a, b", "--allow=c"], specs)).values).toEqual({
    allow: ["a", "b", "c"],
  });
  await expect(parseOptions(["--allow", "a,,b"], specs)).rejects.toThrow(
    new UsageError("the value of --allow is empty"),
  );
  expect((await parseOptions([], specs)).values).toEqual({ allow: [] });
  vi.stubEnv("UNDERPASS_ALLOW", "a, b");
  expect((await parseOptions([], specs)).values).toEqual({ allow: ["a", "b"] });
  expect((await parseOptions(["--allow", "c"], specs)).values).toEqual({ allow: ["c"] });
});

test("in the environment, values that contain commas are separated by line breaks", async () => {
  vi.stubEnv("UNDERPASS_HEADER", "X-A: one\nX-B: two, three\n");
  expect((await parseOptions([], ORIGIN_OPTIONS)).values.header).toEqual([
    ["X-A", "one"],
    ["X-B", "two, three"],
  ]);
});

test("an empty value is a mistake on the command line, and sets nothing in the environment", async () => {
  await expect(parseOptions(["--token-file="], SPECS)).rejects.toThrow(
    new UsageError("the value of --token-file is empty"),
  );
  await expect(parseOptions(["--token-file", ""], SPECS)).rejects.toThrow(UsageError);
  vi.stubEnv("UNDERPASS_TOKEN_FILE", "");
  expect((await parseOptions([], SPECS)).values["token-file"]).toBeUndefined();
});

test("a value is validated and converted by its option's own parser", async () => {
  const parse = (text: string, option: string): number => {
    if (/^\d+$/.test(text)) return Number(text);
    throw new UsageError(`${option} must be a number, not ${text}`);
  };
  const specs = { port: { kind: "text", help: "", parse } } as const;
  expect((await parseOptions(["--port", "80"], specs)).values).toEqual({ port: 80 });
  expect((await parseOptions([], specs)).values).toEqual({ port: undefined });
  vi.stubEnv("UNDERPASS_PORT", "http");
  await expect(parseOptions([], specs)).rejects.toThrow(
    new UsageError("UNDERPASS_PORT must be a number, not http"),
  );
});

describe("options that exclude each other", () => {
  test.each<[string[], string, string, OptionSpecs]>([
    [["3000", "--name", "cli"], "UNDERPASS_SUBDOMAIN", "subdomain", HTTP.options],
    [["3000", "--subdomain", "cli"], "UNDERPASS_NAME", "name", HTTP.options],
    [["3000", "--name", "cli"], "UNDERPASS_URL", "url", HTTP.options],
    [["3000", "--url", "cli.localhost"], "UNDERPASS_SUBDOMAIN", "subdomain", HTTP.options],
    [["3000", "--url", "cli.localhost"], "UNDERPASS_NAME", "name", HTTP.options],
    [["22", "--private"], "UNDERPASS_REMOTE_PORT", "remote-port", TCP.options],
    [["22", "--remote-port", "42050"], "UNDERPASS_PRIVATE", "private", TCP.options],
    [["web"], "UNDERPASS_ALL", "all", START.options],
  ])("%j takes precedence over %s", async (args, variable, name, specs) => {
    vi.stubEnv(variable, "1");
    expect((await parseOptions([], specs)).values[name]).toBeTruthy();
    expect((await parseOptions(args, specs)).values[name]).toBeFalsy();
  });

  test.each<[string, string, OptionSpecs]>([
    ["UNDERPASS_SUBDOMAIN", "UNDERPASS_NAME", HTTP.options],
    ["UNDERPASS_SUBDOMAIN", "UNDERPASS_URL", HTTP.options],
    ["UNDERPASS_REMOTE_PORT", "UNDERPASS_PRIVATE", TCP.options],
  ])("%s and %s are named when both are set", async (first, second, specs) => {
    vi.stubEnv(first, "42050");
    vi.stubEnv(second, "1");
    await expect(parseOptions([], specs)).rejects.toThrow(
      new UsageError(`use ${first} or ${second}, not both`),
    );
  });

  test("can both be set in the environment to the same value", async () => {
    vi.stubEnv("UNDERPASS_NAME", "shop");
    vi.stubEnv("UNDERPASS_SUBDOMAIN", "shop");
    const { values } = await parseOptions([], HTTP.options);
    expect(values).toMatchObject({ name: "shop", subdomain: "shop" });
  });
});
