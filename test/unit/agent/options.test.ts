import { afterEach, describe, expect, test, vi } from "vitest";
import { formatHelp, parseOptions, UsageError, type OptionSpec } from "../../../agent/options.ts";

const SPECS = {
  "token-file": { kind: "text", value: "FILE", help: "where the token is" },
  json: { kind: "flag", help: "for programs" },
} as const satisfies Record<string, OptionSpec>;

afterEach(() => vi.unstubAllEnvs());

describe("an option", () => {
  test("is read in both ways of writing it", () => {
    expect(parseOptions(["--token-file", "a", "--json", "3000"], SPECS)).toEqual({
      values: { "token-file": "a", json: true },
      positionals: ["3000"],
    });
    expect(parseOptions(["3000", "--token-file=b"], SPECS).values["token-file"]).toBe("b");
  });

  test("can be said in the environment, and the command line wins", () => {
    vi.stubEnv("UNDERPASS_TOKEN_FILE", "from-env");
    vi.stubEnv("UNDERPASS_JSON", "1");
    expect(parseOptions([], SPECS).values).toEqual({ "token-file": "from-env", json: true });
    expect(parseOptions(["--token-file", "a"], SPECS).values["token-file"]).toBe("a");
  });

  test.each(["", "0", "false"])("that is a flag is not set by the environment's %j", (value) => {
    vi.stubEnv("UNDERPASS_JSON", value);
    expect(parseOptions([], SPECS).values.json).toBe(false);
  });

  test.each([["--unknown"], ["--token-file"], ["--json=yes"], ["-x"]])(
    "that is wrong (%s) is told in one line",
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

  test("is in the help with its value", () => {
    expect(formatHelp(SPECS)).toBe(
      "  --token-file FILE  where the token is\n  --json             for programs",
    );
  });
});

test("a list is given by repeating its option, or in the environment with commas", () => {
  const specs = { allow: { kind: "list", help: "" } } as const;
  expect(parseOptions(["--allow", "a", "--allow=b"], specs).values).toEqual({ allow: ["a", "b"] });
  expect(parseOptions([], specs).values).toEqual({ allow: [] });
  vi.stubEnv("UNDERPASS_ALLOW", "a, b");
  expect(parseOptions([], specs).values).toEqual({ allow: ["a", "b"] });
  expect(parseOptions(["--allow", "c"], specs).values).toEqual({ allow: ["c"] });
});
