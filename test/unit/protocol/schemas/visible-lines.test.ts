/** Names that people read in lists, mails and configurations. */
import { expect, test } from "vitest";
import type { z } from "zod";
import { MintVisitorToken } from "../../../../protocol/schemas/access/visitor-tokens.ts";
import { CreateNetwork, EnrollDevice } from "../../../../protocol/schemas/networks.ts";
import {
  CreateProject,
  RenameProject,
} from "../../../../protocol/schemas/organizations/projects.ts";
import { MintMasterKey, MintProjectToken, MintToken } from "../../../../protocol/schemas/tokens.ts";
import { CreateReceiver } from "../../../../protocol/schemas/webhooks.ts";

const WHAT = "must not contain invisible formatting characters";

test.each<[string, z.ZodType, string]>([
  ["a token", MintToken, "name"],
  ["a token of a project", MintProjectToken, "name"],
  ["a master key", MintMasterKey, "name"],
  ["a project", CreateProject, "name"],
  ["a project that is renamed", RenameProject, "name"],
  ["a network", CreateNetwork, "name"],
  ["a device", EnrollDevice, "name"],
  ["a receiver", CreateReceiver, "name"],
  ["a visitor token", MintVisitorToken, "subject"],
])(
  "the name of %s has no characters that are invisible or change the order of others",
  (_, schema, field) => {
    const listMessages = (value: string) =>
      (schema.safeParse({ [field]: value }).error?.issues ?? [])
        .filter(({ path }) => path[0] === field)
        .map(({ message }) => message);
    for (const hidden of ["\u200b", "\u202e", "\u2066", "\ufeff", "\u2028", "\u2029"]) {
      expect(listMessages(`api${hidden}xe`)).toEqual([WHAT]);
    }
    expect(listMessages("Büro 2 \u{1f680} – a/b")).toEqual([]);
  },
);
