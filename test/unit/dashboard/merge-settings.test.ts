/** Two users change the capture settings of a tunnel at the same time. */
import { expect, test } from "vitest";
import {
  mergeSettings,
  toEditedSettings,
} from "../../../dashboard/pages/tunnels/capturing/merge-settings.ts";

const base = {
  capture: true,
  bodies: true,
  allowReplay: false,
  redactHeaders: ["authorization", "cookie"],
};

test("only what the user has changed replaces the settings of another user", () => {
  const edited = { ...toEditedSettings(base), allowReplay: true };
  const current = { ...base, bodies: false };
  expect(mergeSettings(base, edited, current)).toEqual({
    ...base,
    bodies: false,
    allowReplay: true,
  });
});

test("headers that another user has added or removed meanwhile stay so", () => {
  const edited = { ...toEditedSettings(base), redactHeaders: "authorization\ncookie\nX-Mine" };
  const current = { ...base, redactHeaders: ["cookie", "x-other"] };
  const { redactHeaders } = mergeSettings(base, edited, current);
  expect(redactHeaders).toEqual(["cookie", "X-Mine", "x-other"]);
});

test("a header that the user removes is removed, and one that both add is listed once", () => {
  const edited = { ...toEditedSettings(base), redactHeaders: "cookie\nX-Both" };
  const current = { ...base, redactHeaders: [...base.redactHeaders, "x-both"] };
  const { redactHeaders } = mergeSettings(base, edited, current);
  expect(redactHeaders).toEqual(["cookie", "X-Both"]);
});
