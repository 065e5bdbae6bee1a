import { expect, test } from "vitest";
import { describeOverLimit, LIMITED_RESOURCES } from "../../../protocol/over-limits.ts";

test.each(LIMITED_RESOURCES)(
  "%s beyond the plan: the text also fits a server that sells no plans",
  (what) => {
    expect(describeOverLimit({ what, count: 3, allowed: 1 })).not.toMatch(/upgrade|buy/i);
  },
);
