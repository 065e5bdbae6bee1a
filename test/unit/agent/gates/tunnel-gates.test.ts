import { describe, expect, test } from "vitest";
import { describeGates, describeUnchangedGates } from "../../../../agent/gates/tunnel-gates.ts";
import type { GateName } from "../../../../protocol/wire/frames.ts";

const gates = (names: string[], ownNames: GateName[] = []) => ({ tunnelId: "id", names, ownNames });

describe("what visitors must bring", () => {
  test.each<[string[], string | undefined]>([
    [[], undefined],
    [["password"], "with a password"],
    [["addresses"], "from allowed addresses"],
    [["token", "sign_in"], "with a sign-in and a token (JWT)"],
    [["addresses", "sign_in", "password"], "with a password and a sign-in, from allowed addresses"],
    [["policy"], "under a traffic policy"],
    [["token", "policy"], "with a token (JWT), under a traffic policy"],
    [["a gate of a later version"], undefined],
  ])("%j", (names, text) => {
    expect(describeGates(gates(names))).toBe(text);
  });
});

describe("how to remove the gates that this command did not set", () => {
  test("none", () => {
    expect(describeUnchangedGates(gates(["password"], ["password"]))).toBeUndefined();
  });

  test("one of two", () => {
    expect(describeUnchangedGates(gates(["password", "sign_in"], ["password"]))).toBe(
      "the sign-in was not set by this command; to remove it: DELETE /tunnels/id/edge-auth (API)",
    );
  });

  test("a policy, of which the check of tokens is a part", () => {
    expect(describeUnchangedGates(gates(["token", "policy"]))).toBe(
      "the traffic policy was not set by this command; to remove it: --policy-file=off",
    );
    expect(describeUnchangedGates(gates(["policy"]), "file")).toMatch(
      / to remove it: `policy: off` in underpass\.yml$/,
    );
    expect(describeUnchangedGates(gates(["token", "policy"], ["token", "policy"]))).toBeUndefined();
  });

  test("the addresses of a TCP tunnel", () => {
    expect(describeUnchangedGates({ ...gates(["addresses"]), isTcp: true })).toMatch(
      / to remove it: --allow=off$/,
    );
  });

  test("several", () => {
    expect(describeUnchangedGates(gates(["password", "token", "addresses"]))).toBe(
      "the password, the check of tokens and the list of addresses were not set by this command; to remove them: " +
        "--basic-auth=off, --policy-file=off, DELETE /tunnels/id/ip-allowlist (API)",
    );
  });
});
