import { afterEach, describe, expect, test, vi } from "vitest";
import { parseOptions, UsageError, type OptionSpec } from "../../../agent/options.ts";
import { ORIGIN_OPTIONS } from "../../../agent/origin/origin-options.ts";

const SPECS = {
  "token-file": { kind: "text", placeholder: "FILE", help: "where the token is" },
  json: { kind: "flag", help: "for programs" },
} as const satisfies Record<string, OptionSpec>;

afterEach(() => vi.unstubAllEnvs());

describe("an option", () => {
  test("is parsed in both notations", () => {
    expect(parseOptions(["--token-file", "a", "--json", "3000"], SPECS)).toEqual({
      values: { "token-file": "a", json: true },
      positionals: ["3000"],
    });
    expect(parseOptions(["3000", "--token-file=b"], SPECS).values["token-file"]).toBe("b");
  });

  test("can be set in the environment, and the command line takes precedence", () => {
    vi.stubEnv("UNDERPASS_TOKEN_FILE", "from-env");
    vi.stubEnv("UNDERPASS_JSON", "1");
    expect(parseOptions([], SPECS).values).toEqual({ "token-file": "from-env", json: true });
    expect(parseOptions(["--token-file", "a"], SPECS).values["token-file"]).toBe("a");
  });

  test.each(["", "0", "false"])("that is a flag is not set by %j in the environment", (value) => {
    vi.stubEnv("UNDERPASS_JSON", value);
    expect(parseOptions([], SPECS).values.json).toBe(false);
  });

  test.each([["--unknown"], ["--token-file"], ["--json=yes"], ["-x"]])(
    "that is not valid (%s) is reported in one line",
    (...args) => {
      let message = "";
      try {
        parseOptions(args, SPECS);
      } catch (error) {
        expect(error).toBeInstanceOf(UsageError);
        ({ message } = error as UsageError);
      }
      expect(message).toMatch(/^[^\n]+$/);
    },
  );
});

test("a flag in the environment is 1 or 0, and nothing else", () => {
  vi.stubEnv("UNDERPASS_JSON", "yes");
  expect(() => parseOptions([], { json: { kind: "flag", help: "" } })).toThrow(
    new UsageError("UNDERPASS_JSON must be 1 or 0, not yes"),
  );
});

test("a list is given by repeating its option, or with commas", () => {
  const specs = { allow: { kind: "list", help: "" } } as const;
  expect(parseOptions(["--allow", "a", "--allow=b"], specs).values).toEqual({ allow: ["a", "b"] });
  expect(parseOptions(["--allow", "a, b", "--allow=c"], specs).values).toEqual({
    allow: ["a", "b", "c"],
  });
  expect(() => parseOptions(["--allow", "a,,b"], specs)).toThrow(
    new UsageError("the value of --allow is empty"),
  );
  expect(parseOptions([], specs).values).toEqual({ allow: [] });
  vi.stubEnv("UNDERPASS_ALLOW", "a, b");
  expect(parseOptions([], specs).values).toEqual({ allow: ["a", "b"] });
  expect(parseOptions(["--allow", "c"], specs).values).toEqual({ allow: ["c"] });
});

test("in the environment, values that contain commas are separated by line breaks", () => {
  vi.stubEnv("UNDERPASS_HEADER", "X-A: one\nX-B: two, three\n");
  expect(parseOptions([], ORIGIN_OPTIONS).values.header).toEqual([
    ["X-A", "one"],
    ["X-B", "two, three"],
  ]);
});

test("an empty value is a mistake on the command line, and sets nothing in the environment", () => {
  expect(() => parseOptions(["--token-file="], SPECS)).toThrow(
    new UsageError("the value of --token-file is empty"),
  );
  expect(() => parseOptions(["--token-file", ""], SPECS)).toThrow(UsageError);
  vi.stubEnv("UNDERPASS_TOKEN_FILE", "");
  expect(parseOptions([], SPECS).values["token-file"]).toBeUndefined();
});

test("a value is validated and converted by its option's own parser", () => {
  const parse = (text: string, option: string): number => {
    if (/^\d+$/.test(text)) return Number(text);
    throw new UsageError(`${option} must be a number, not ${text}`);
  };
  const specs = { port: { kind: "text", help: "", parse } } as const;
  expect(parseOptions(["--port", "80"], specs).values).toEqual({ port: 80 });
  expect(parseOptions([], specs).values).toEqual({ port: undefined });
  vi.stubEnv("UNDERPASS_PORT", "http");
  expect(() => parseOptions([], specs)).toThrow(
    new UsageError("UNDERPASS_PORT must be a number, not http"),
  );
});
